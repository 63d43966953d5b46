// Package modproxy shares modules through a cache of results. A [Server] is a module proxy that serves the go commands of this machine
// from the cache. [Store] stores the modules of a module cache.
//
// A go command asks one proxy after the other, so the user's proxies have what the cache lacks. It compares every module with go.sum, and a
// toolchain with its sum in release.yaml, whichever proxy had it.
//
// # What must never be in here
//
// Which modules a tree has. How results travel: see package sharedcache.
package modproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gomod "golang.org/x/mod/module"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/tree/module"
)

// key returns the key of a module's files.
func key(v module.Version) string { return action.BlobKey("module 1", v.String()) }

// A Server is a module proxy on loopback.
type Server struct {
	URL string // for GOPROXY

	cache  action.Cache
	ctx    context.Context
	dir    string // for temporary files
	server *http.Server
	stop   context.CancelFunc
	known  sync.Map // *lookup by module.Version
}

// Start starts a server. It asks the cache until ctx ends.
func Start(ctx context.Context, cache action.Cache) (*Server, error) {
	dir, err := os.MkdirTemp("", "slipway-modules-")
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s := &Server{URL: "http://" + l.Addr().String(), cache: cache, dir: dir}
	s.ctx, s.stop = context.WithCancel(ctx)
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(l) }() // until it is closed
	return s, nil
}

// Close ends the server.
func (s *Server) Close() error {
	s.stop()
	return errors.Join(s.server.Close(), os.RemoveAll(s.dir))
}

// ServeHTTP answers the requests of `go help goproxy`. Whatever goes wrong, the answer is "not found", so that the next proxy is asked.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, suffix, ok := parse(r.URL.Path)
	if !ok || !s.serve(w, v, suffix) {
		http.NotFound(w, r)
	}
}

// serve writes a file of a module, if the cache has it.
func (s *Server) serve(w io.Writer, v module.Version, suffix string) bool {
	l := s.lookup(v)
	e, ok := l.files[suffix]
	if !ok {
		return false
	}
	if e.Size <= maxSmall {
		<-l.fetched
		if data, ok := l.small[suffix]; ok {
			_, _ = w.Write(data) // the go command notices what is cut short
			return true
		}
	}
	dir, err := os.MkdirTemp(s.dir, "file")
	if err != nil {
		return false
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "content")
	if s.cache.Fetch(s.ctx, []action.Content{{SHA256: e.SHA256, Size: e.Size, File: file}}) != nil {
		return false
	}
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	_, _ = io.Copy(w, f)
	return true
}

// parse returns the version and the suffix of a file that a request is for: /PATH/@v/VERSION.SUFFIX.
func parse(name string) (v module.Version, suffix string, ok bool) {
	folder, file := path.Split(strings.TrimPrefix(name, "/"))
	escaped, found := strings.CutSuffix(folder, "/@v/")
	suffix = path.Ext(file)
	if !found || suffix != ".zip" && suffix != ".mod" && suffix != ".info" {
		return v, "", false
	}
	var err1, err2 error
	v.Path, err1 = gomod.UnescapePath(escaped)
	v.Version, err2 = gomod.UnescapeVersion(strings.TrimSuffix(file, suffix))
	return v, suffix, err1 == nil && err2 == nil
}

// maxSmall is how large a file may be that is fetched with others of its module, in bytes. Nearly every go.mod is smaller.
const maxSmall = 64 << 10

// A lookup is what the cache says of a module, asked once.
type lookup struct {
	once  sync.Once
	files map[string]action.Entry // by suffix

	// The go command asks for one file of a module after the other. The small ones are fetched as soon as it asks for any of them, in one
	// request, so that it waits for a distant server once for all of them.
	fetched chan struct{} // closed when they are
	small   map[string][]byte
}

// lookup asks the cache for a module, unless it was asked before.
func (s *Server) lookup(v module.Version) *lookup {
	known, _ := s.known.LoadOrStore(v, &lookup{fetched: make(chan struct{})})
	l := known.(*lookup)
	l.once.Do(func() {
		if r := s.cache.LookupBlob(s.ctx, key(v)); r != nil {
			l.files = map[string]action.Entry{}
			for _, e := range r.Entries {
				if suffix, ok := strings.CutPrefix(e.Path, "module"); ok && e.Kind == action.RegularFile {
					l.files[suffix] = e
				}
			}
		}
		go l.fetch(s)
	})
	return l
}

// fetch fetches the small files. If one of them cannot be had, others may be missing afterwards, too.
func (l *lookup) fetch(s *Server) {
	defer close(l.fetched)
	var mu sync.Mutex
	l.small = map[string][]byte{}
	var contents []action.Content
	for suffix, e := range l.files {
		if e.Size > maxSmall {
			continue
		}
		contents = append(contents, action.Content{SHA256: e.SHA256, Size: e.Size, Take: func(data []byte) error {
			mu.Lock()
			defer mu.Unlock()
			l.small[suffix] = bytes.Clone(data)
			return nil
		}})
	}
	if len(contents) > 0 {
		_ = s.cache.Fetch(s.ctx, contents)
	}
}

// stores is how many modules are stored at the same time.
const stores = 8

// Store stores the modules that are whole in a module cache. Once the cache has all of them, it is asked only for that.
func Store(ctx context.Context, cache action.Cache, modCache string, modules []module.Pinned) error {
	names := []string{"all modules 1"}
	for _, m := range modules {
		names = append(names, m.String(), m.Sum)
	}
	all := action.BlobKey(names...)
	if cache.LookupBlob(ctx, all) != nil {
		return nil
	}
	var lacks atomic.Bool // the module cache lacks some
	g, limited := errgroup.WithContext(ctx)
	g.SetLimit(stores)
	for _, m := range modules {
		if m.Sum == "" {
			continue // only its go.mod counts, and that only for `go mod tidy`
		}
		g.Go(func() error {
			files, err := files(modCache, m)
			if errors.Is(err, fs.ErrNotExist) {
				lacks.Store(true)
				return nil
			}
			if err != nil {
				return err
			}
			return action.StoreFiles(limited, cache, key(m.Version), files)
		})
	}
	if err := g.Wait(); err != nil || lacks.Load() {
		return err
	}
	return action.StoreFiles(ctx, cache, all, nil)
}

// files returns a module's files in a module cache, by their names in a cache of results. The go command has compared them with the sum.
func files(modCache string, m module.Pinned) (map[string]string, error) {
	at, err := m.ProxyPath()
	if err != nil {
		return nil, err
	}
	name := filepath.Join(modCache, "cache", "download", filepath.FromSlash(at))
	sum, err := os.ReadFile(name + ".ziphash")
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(string(sum)) != m.Sum {
		return nil, fmt.Errorf("%s: %w with the sum %s", m.Version, fs.ErrNotExist, m.Sum)
	}
	all := map[string]string{}
	for _, suffix := range []string{".info", ".mod", ".zip"} {
		_, err := os.Stat(name + suffix)
		if suffix == ".info" && errors.Is(err, fs.ErrNotExist) {
			continue // a go command that only compiles needs none
		}
		if err != nil {
			return nil, err
		}
		all["module"+suffix] = name + suffix
	}
	return all, nil
}
