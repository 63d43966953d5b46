package console

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/action"
)

func TestTimelineIsWellFormed(t *testing.T) {
	t.Parallel()
	hostile := []action.Event{
		{Time: at(5), Kind: action.Started, Action: `a <b> & "c" 'd'`, Phase: "<phase>", Text: "]]>\x00\x1b"},
		{Time: at(1), Kind: action.Failed, Action: `a <b> & "c" 'd'`, Phase: "<phase>", Text: "clock went back"},
	}
	for name, test := range map[string]struct {
		events []action.Event
		bars   int
		has    []string
	}{
		"release": {release(), 3, []string{"Timeline: 2 unchanged, 4 done in 4m19s", "linux/amd64 4m12s",
			"· compile linux/amd64 kubelet", "peak memory 3.2 GiB", "by go build, pid 4712"}},
		"broken":      {broken(), 2, []string{"✗ linux/arm64 failed after 12.0s"}},
		"unchanged":   {unchanged(), 0, []string{"Nothing ran."}},
		"interrupted": {release()[:11], 2, []string{"not finished after 30.9s"}},
		"empty":       {nil, 0, nil},
		"hostile":     {hostile, 1, nil},
	} {
		var svg bytes.Buffer
		if err := Timeline(&svg, test.events); err != nil {
			t.Fatal(err)
		}
		text := svg.String()
		in := xml.NewDecoder(&svg)
		bars := 0
		var chars strings.Builder
		for {
			token, err := in.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
			switch token := token.(type) {
			case xml.StartElement:
				if token.Name.Local == "g" {
					bars++
				}
				for _, attr := range token.Attr {
					if strings.Contains(attr.Value, "NaN") || strings.Contains(attr.Value, "Inf") ||
						attr.Name.Local == "width" && strings.HasPrefix(attr.Value, "-") {
						t.Errorf("%s: %s=%q", name, attr.Name.Local, attr.Value)
					}
				}
			case xml.CharData:
				chars.Write(token)
			}
		}
		if n := strings.Count(text, `class="grid"`); len(test.events) > 0 && n < 3 {
			t.Errorf("%s: %d grid lines", name, n)
		}
		if bars != test.bars {
			t.Errorf("%s: %d bars, want %d", name, bars, test.bars)
		}
		for _, want := range test.has {
			if !strings.Contains(chars.String(), want) {
				t.Errorf("%s: nothing says %q in\n%s", name, want, chars.String())
			}
		}
	}
}

func TestTimelineBarsAndLabelsDoNotOverlap(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var r run
	for n := range 200 {
		start := random.Float64() * 100
		took := time.Duration(random.ExpFloat64() * 5 * float64(time.Second))
		r.add(action.Event{Time: at(start).Add(took), Kind: action.Done, Action: fmt.Sprintf("image %d", n),
			Phase: []string{"image", "package"}[n%2], Duration: took})
	}
	c := newChart(&r)
	for _, g := range c.groups {
		for i := range g.boxes {
			for j := range i {
				a, b := &g.boxes[i], &g.boxes[j]
				if a.y == b.y && a.from < b.to && b.from < a.to {
					t.Errorf("%q overlaps %q", a.label, b.label)
				}
			}
			if b := g.boxes[i]; b.y < g.y || b.y+laneHeight > g.y+g.height {
				t.Errorf("%q lies outside of its phase", b.label)
			}
		}
	}
}

func TestTicksAreRoundAndFew(t *testing.T) {
	t.Parallel()
	for _, length := range []time.Duration{time.Millisecond, 700 * time.Millisecond, 13 * time.Second, 4 * time.Minute,
		time.Hour, 30 * time.Hour, 900 * time.Hour} {
		if n := length / tickStep(length); n < 2 || n > 12 {
			t.Errorf("%s: %d ticks, %s apart", length, n, tickStep(length))
		}
	}
}
