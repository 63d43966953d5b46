package sharedcache_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/reapi"
	"slipway.build/pkg/mechanism/reapi/standin"
	"slipway.build/pkg/mechanism/sharedcache"
	"slipway.build/pkg/mechanism/signature"
)

// A said is what caches told their users.
type said struct {
	mu    sync.Mutex
	lines []string
}

func (s *said) notify(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, text)
}

func (s *said) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

func newKey(t *testing.T) signature.PrivateKey {
	t.Helper()
	key, err := signature.New()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func open(t *testing.T, s *standin.Server, change func(*sharedcache.Options)) (*sharedcache.Cache, *said) {
	t.Helper()
	client, err := reapi.New(reapi.Options{URL: s.URL(), Patience: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	said := &said{}
	o := sharedcache.Options{Client: client, Name: "here", Notify: said.notify}
	change(&o)
	return sharedcache.New(o), said
}

// key is the key of an action, as package action computes it.
var key = strings.Repeat("0a", 32)

// files are what the action of the tests made.
var files = map[string]string{"out/small": "small", "out/empty": "", "out/large": strings.Repeat("0123456789",
	200_000), "out/same": "small"}

func result() *action.Result {
	r := &action.Result{Entries: []action.Entry{{Path: "out/", Kind: action.Folder},
		{Path: "out/link", Kind: action.SymbolicLink, Target: "small"}}}
	for _, name := range []string{"out/empty", "out/large", "out/same", "out/small"} {
		d := reapi.DigestOf([]byte(files[name]))
		r.Entries = append(r.Entries, action.Entry{Path: name, Kind: action.RegularFile, SHA256: d.SHA256, Size: d.Size})
	}
	return r
}

func opened(name string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(files[name])), nil
}

func fetch(t *testing.T, c *sharedcache.Cache) (map[string]string, error) {
	t.Helper()
	dir := t.TempDir()
	var contents []action.Content
	for _, e := range result().Entries {
		if e.Kind == action.RegularFile {
			contents = append(contents, action.Content{SHA256: e.SHA256, Size: e.Size, File: filepath.Join(dir, filepath.Base(e.Path))})
		}
	}
	if err := c.Fetch(t.Context(), contents); err != nil {
		return nil, err
	}
	got := map[string]string{}
	for name := range files {
		data, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = string(data)
	}
	return got, nil
}

// Contents of any size can be handed over, instead of being written or beside it.
func TestContentsAreHandedOver(t *testing.T) {
	s := standin.Start(t)
	mine := newKey(t)
	store(t, s, mine)
	c, _ := open(t, s, func(o *sharedcache.Options) { o.Keys = []signature.PublicKey{mine.Public()} })
	failed := errors.New("no room")
	for name, text := range files {
		d := reapi.DigestOf([]byte(text))
		file, got := filepath.Join(t.TempDir(), "file"), ""
		taken := action.Content{SHA256: d.SHA256, Size: d.Size, Take: func(data []byte) error { got = string(data); return nil }}
		written := action.Content{SHA256: d.SHA256, Size: d.Size, File: file}
		if err := c.Fetch(t.Context(), []action.Content{written, taken}); err != nil || got != text {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if data, err := os.ReadFile(file); err != nil || string(data) != text {
			t.Errorf("%s: the file has %d bytes, %v", name, len(data), err)
		}
		taken.Take = func([]byte) error { return failed }
		if err := c.Fetch(t.Context(), []action.Content{taken}); !errors.Is(err, failed) {
			t.Errorf("%s: %v, want the error of the one who takes it", name, err)
		}
	}
}

func store(t *testing.T, s *standin.Server, by signature.PrivateKey) {
	t.Helper()
	c, _ := open(t, s, func(o *sharedcache.Options) { o.Sign = &by })
	if err := c.Store(t.Context(), key, result(), opened); err != nil {
		t.Fatal(err)
	}
}

func TestResultsOfTrustedKeysCount(t *testing.T) {
	s := standin.Start(t)
	mine, other := newKey(t), newKey(t)
	store(t, s, mine)

	c, said := open(t, s, func(o *sharedcache.Options) { o.Keys = []signature.PublicKey{other.Public(), mine.Public()} })
	got := c.Lookup(t.Context(), key)
	want, _ := json.Marshal(result())
	if text, _ := json.Marshal(got); !bytes.Equal(text, want) {
		t.Fatalf("the result is %s, want %s; %s", text, want, said.all())
	}
	contents, err := fetch(t, c)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if contents[name] != text {
			t.Errorf("%s came back as %d other bytes", name, len(contents[name]))
		}
	}
	if c.Lookup(t.Context(), strings.Repeat("0b", 32)) != nil {
		t.Error("another action has a result")
	}
	if n := c.Counts(); n.Hits != 1 || n.Misses != 1 || n.Untrusted != 0 || n.Fetched != 2_000_005 {
		t.Errorf("counted: %+v", n)
	}
	if c.Stores() {
		t.Error("without a key to sign by, results are stored")
	}
	again, _ := open(t, s, func(o *sharedcache.Options) { o.Sign = &mine })
	if err := again.Store(t.Context(), key, result(), opened); err != nil || again.Counts().Stored != 0 {
		t.Errorf("a result that is there is stored again: %+v, %v", again.Counts(), err)
	}
}

func TestOtherResultsDoNotCount(t *testing.T) {
	mine, other := newKey(t), newKey(t)
	trust := func(o *sharedcache.Options) { o.Keys = []signature.PublicKey{mine.Public()} }
	signed := func(by signature.PrivateKey, of string) []byte {
		s := standin.Start(t)
		c, _ := open(t, s, func(o *sharedcache.Options) { o.Sign = &by })
		if err := c.Store(t.Context(), of, result(), opened); err != nil {
			t.Fatal(err)
		}
		client, err := reapi.New(reapi.Options{URL: s.URL()})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		id, _ := reapi.Action("slipway", "action", of)
		r, err := client.Result(t.Context(), id)
		if err != nil || r == nil {
			t.Fatal(r, err)
		}
		return r.Stdout
	}
	right := signed(mine, key)
	for name, tc := range map[string]struct {
		stdout []byte
		says   string
	}{
		"unsigned":             {nil, "they are not signed"},
		"by another key":       {signed(other, key), "it is by the key"},
		"of another action":    {signed(mine, strings.Repeat("0b", 32)), "the statement is of something else"},
		"changed":              {bytes.Replace(right, []byte(`"payload":"`), []byte(`"payload":"ICAg`), 1), "or not of this content"},
		"no bundle":            {[]byte("hello"), "it is not a bundle"},
		"with the right words": {right, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := standin.Start(t)
			client, err := reapi.New(reapi.Options{URL: s.URL()})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			id, _ := reapi.Action("slipway", "action", key)
			if err := client.StoreResult(t.Context(), id, &reapi.Result{Stdout: tc.stdout}); err != nil {
				t.Fatal(err)
			}
			c, said := open(t, s, trust)
			got := c.Lookup(t.Context(), key)
			if (got == nil) != (tc.says != "") {
				t.Fatalf("the result is %v", got)
			}
			if tc.says == "" {
				return
			}
			if n := c.Counts(); n.Untrusted != 1 || n.Hits+n.Misses != 0 || !strings.Contains(said.all(), tc.says) {
				t.Errorf("counted: %+v; said: %s", n, said.all())
			}
		})
	}
}

// Ten thousand answers in which bits are flipped, bytes are others, parts are missing or come twice, or which are those of other requests:
// none reaches a file, and no result is another than was signed.
func TestDamagedAnswersReachNothing(t *testing.T) {
	t.Parallel()
	s := standin.Start(t)
	by := newKey(t)
	r := &action.Result{Entries: []action.Entry{{Path: "out/", Kind: action.Folder}}}
	texts := map[string]string{"out/a": "small", "out/b": strings.Repeat("another", 300), "out/c": ""}
	for name, text := range texts {
		d := reapi.DigestOf([]byte(text))
		r.Entries = append(r.Entries, action.Entry{Path: name, Kind: action.RegularFile, SHA256: d.SHA256, Size: d.Size})
	}
	writer, _ := open(t, s, func(o *sharedcache.Options) { o.Sign = &by })
	err := writer.Store(t.Context(), key, r, func(name string) (io.ReadCloser, error) {
		return io.NopCloser(
			strings.NewReader(texts[name])), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	var damaged int
	var earlier []byte
	s.Set(standin.Settings{Damage: func(frame []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		before := frame
		frame = bytes.Clone(frame)
		at, to := random.IntN(len(frame)), random.IntN(len(frame))
		switch random.IntN(8) {
		case 0:
			frame[at] ^= 1 << random.IntN(8)
		case 1:
			frame[at], frame[to] = frame[to], frame[at]
		case 2:
			frame[at] = "0123456789abcdef"[random.IntN(16)] // in a digest or a signature, perhaps
		case 3:
			frame = frame[:at]
		case 4:
			frame = append(frame, frame[at:]...)
		case 5:
			frame = append(frame[:min(at, to):min(at, to)], frame[max(at, to):]...)
		case 6:
			frame = bytes.Clone(earlier)
		case 7: // the length is right, and the rest is not
			copy(frame[5:], bytes.Repeat([]byte{byte(random.IntN(256))}, len(frame)))
		}
		earlier = before
		if !bytes.Equal(frame, before) {
			damaged++
		}
		return frame
	}})
	client, err := reapi.New(reapi.Options{URL: s.URL(), Patience: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return damaged >= 10_000
	}
	dir := t.TempDir()
	var workers sync.WaitGroup
	for n := range 200 { // most of the time, a client waits before it asks again
		workers.Go(func() {
			file := filepath.Join(dir, strconv.Itoa(n))
			for !enough() {
				c := sharedcache.New(sharedcache.Options{Client: client, Name: "here", Keys: []signature.PublicKey{by.Public()}})
				if got := c.Lookup(t.Context(), key); got != nil && !reflect.DeepEqual(got, r) {
					t.Errorf("the result is %+v", got)
				}
				for name, text := range texts {
					d := reapi.DigestOf([]byte(text))
					wanted := action.Content{SHA256: d.SHA256, Size: d.Size, File: file}
					if n%2 == 1 {
						wanted.Take = func(data []byte) error {
							if string(data) != text {
								t.Errorf("%s is handed over as %q", name, data)
							}
							return os.WriteFile(file, data, 0o666)
						}
					}
					err := c.Fetch(t.Context(), []action.Content{wanted})
					if data, _ := os.ReadFile(file); err == nil && string(data) != text {
						t.Errorf("%s has %q", name, data)
					}
					_ = os.Remove(file)
				}
			}
		})
	}
	workers.Wait()
}

func TestServerThatFailsIsGivenUp(t *testing.T) {
	s := standin.Start(t)
	mine := newKey(t)
	store(t, s, mine)
	c, said := open(t, s, func(o *sharedcache.Options) { o.Keys = []signature.PublicKey{mine.Public()} })
	s.Die()
	start := time.Now()
	for range 100 {
		if c.Lookup(t.Context(), key) != nil {
			t.Fatal("a dead server has a result")
		}
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("100 lookups took %v", took)
	}
	if strings.Count(said.all(), "\n") != 0 || !strings.Contains(said.all(), "the cache here is not used any more: ") ||
		!strings.Contains(said.all(), "refused") {
		t.Errorf("it says %q", said.all())
	}
	if _, err := fetch(t, c); err == nil {
		t.Error("contents are fetched from a dead server")
	}
}

func TestServersThatDeny(t *testing.T) {
	mine := newKey(t)
	s := standin.Start(t)
	s.Set(standin.Settings{ReadOnly: true})
	c, said := open(t, s, func(o *sharedcache.Options) { o.Sign = &mine })
	if err := c.Store(t.Context(), key, result(), opened); err != nil || c.Stores() || s.Results() != 0 {
		t.Errorf("%v; it still stores: %t; %d results", err, c.Stores(), s.Results())
	}
	if !strings.Contains(said.all(), "takes no results from here: it lets this client only read") {
		t.Errorf("it says %q", said.all())
	}

	for _, kind := range []standin.Fault{standin.Deny, standin.Ask} {
		s = standin.Start(t)
		c, _ = open(t, s, func(o *sharedcache.Options) { o.Sign = &mine })
		if err := c.Store(t.Context(), key, result(), opened); err != nil {
			t.Fatal(err)
		}
		s.Misbehave("UpdateActionResult", kind, -1)
		c, said = open(t, s, func(o *sharedcache.Options) { o.Sign = &mine })
		if err := c.Store(t.Context(), strings.Repeat("b", 64), result(), opened); err == nil || c.Stores() ||
			!strings.Contains(said.all(), "takes no results from here") {
			t.Errorf("%s: %v; it still stores: %t; it says %q", kind, err, c.Stores(), said.all())
		}
		if c.Lookup(t.Context(), key) == nil {
			t.Errorf("%s: results are not read any more: %q", kind, said.all())
		}
	}

	s = standin.Start(t)
	s.Set(standin.Settings{Authorization: "Bearer x"})
	c, said = open(t, s, func(o *sharedcache.Options) { o.Keys = []signature.PublicKey{mine.Public()} })
	c.Lookup(t.Context(), key)
	if !strings.Contains(said.all(), "is not used any more: the server says: permission denied") {
		t.Errorf("it says %q", said.all())
	}
}

// A graph whose cache misbehaves makes what it makes without.
func TestRunsWithAServerThatMisbehaves(t *testing.T) {
	mine := newKey(t)
	graph := func(t *testing.T) *action.Graph {
		g := &action.Graph{Root: t.TempDir(), State: "state"}
		for i, size := range []int{10, 3 << 20} {
			out := fmt.Sprint("out/", i)
			g.Actions = append(g.Actions, &action.Action{ID: out, Outputs: []string{out}, Run: func(_ context.Context, t *action.Task) error {
				return os.WriteFile(t.Path(out), bytes.Repeat([]byte{'0' + byte(i)}, size), 0o666)
			}})
		}
		return g
	}
	for _, kind := range append(standin.Faults, standin.Slow, "") {
		t.Run("with "+string(kind), func(t *testing.T) {
			t.Parallel()
			s := standin.Start(t)
			c, said := open(t, s, func(o *sharedcache.Options) { o.Sign = &mine })
			if err := graph(t).Run(t.Context(), action.Options{Cache: c}); err != nil {
				t.Fatal(err)
			}
			if s.Results() != 2 {
				t.Fatalf("%d results are stored: %s", s.Results(), said.all())
			}
			for _, method := range []string{"GetActionResult", "BatchReadBlobs", "Read"} {
				s.Misbehave(method, kind, -1)
				c, said := open(t, s, func(o *sharedcache.Options) { o.Keys = []signature.PublicKey{mine.Public()} })
				g := graph(t)
				ran := 0
				if err := g.Run(t.Context(), action.Options{Cache: c, Events: func(e action.Event) {
					if e.Kind == action.Done {
						ran++
					}
				}}); err != nil {
					t.Fatalf("%s: %v", method, err)
				}
				works := kind == "" || kind == standin.Slow
				if ran == 0 != works {
					t.Errorf("%s: %d actions ran; it says %q", method, ran, said.all())
				}
				for i, size := range []int{10, 3 << 20} {
					data, err := os.ReadFile(filepath.Join(g.Root, fmt.Sprint("out/", i)))
					if err != nil || !bytes.Equal(data, bytes.Repeat([]byte{'0' + byte(i)}, size)) {
						t.Errorf("%s: out/%d has %d other bytes, %v", method, i, len(data), err)
					}
				}
				s.Behave()
			}
		})
	}
}
