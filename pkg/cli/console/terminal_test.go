package console

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/clipperhouse/displaywidth"

	"slipway.build/pkg/mechanism/action"
)

func TestTerminalDrawsTheseBytes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		events  []action.Event
		env     map[string]string
		verbose int
		width   int
	}{
		"release":     {events: release(), width: 100},
		"no-color":    {events: release(), width: 200, env: map[string]string{"NO_COLOR": "1"}, verbose: 1},
		"narrow":      {events: release(), width: 34},
		"unchanged":   {events: unchanged(), width: 80},
		"broken":      {events: broken(), width: 80},
		"interrupted": {events: release()[:11], width: 80},
		"empty":       {width: 80},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture()
			s.width = test.width
			for key, value := range test.env {
				s.env[key] = value
			}
			o := s.options()
			o.Verbose = test.verbose
			view := newTerminal(o)
			s.show(view, test.events)
			for range 2 {
				if err := view.Close(); err != nil {
					t.Fatal(err)
				}
			}
			visible := strings.NewReplacer("\x1b", "␛", "\r", "␍").Replace(s.String())
			golden(t, "terminal-"+name+".txt", visible)
			if test.env["NO_COLOR"] != "" && colors.MatchString(
				strings.ReplaceAll(s.String(), "\x1b[1mbold\x1b[0m", "")) {
				t.Error("colors in spite of NO_COLOR")
			}
		})
	}
}

// Whenever the process dies, the cursor is visible and at the start of an empty line, no live line wraps, and the screen
// has nothing but lines that stay and the live lines of now.
func TestTerminalKeepsTheScreenWhole(t *testing.T) {
	t.Parallel()
	for _, width := range []int{1, 2, 7, 20, 41, 79, 80, 132} {
		for _, height := range []int{1, 2, 3, 5, 24} {
			s := newFixture()
			s.width, s.height = width, height
			view := newTerminal(s.options())
			screen := &screen{width: width}
			for i, ev := range release() {
				s.show(view, []action.Event{ev})
				screen.write(t, s.String())
				s.Reset()
				if screen.col != 0 || screen.row != len(screen.rows)-1 || screen.rows[screen.row] != "" {
					t.Fatalf("%dx%d: after event %d the cursor is at %d,%d of %q", width, height, i, screen.row, screen.col, screen.rows)
				}
				if len(view.live) >= max(2, height) {
					t.Fatalf("%dx%d: %d live lines", width, height, len(view.live))
				}
				for _, l := range view.live {
					if cells(l) >= max(2, width) {
						t.Fatalf("%dx%d: live line %q is too wide", width, height, l)
					}
				}
			}
			if err := view.Close(); err != nil {
				t.Fatal(err)
			}
			all := strings.Join(screen.rows, "\n")
			if width == 132 && (strings.Contains(all, "━") || strings.Contains(all, "planning") || strings.Count(all, "✓") != 3) {
				t.Errorf("%dx%d: left on screen:\n%s", width, height, all)
			}
		}
	}
}

func TestTerminalFollowsResizing(t *testing.T) {
	t.Parallel()
	s := newFixture()
	s.width = 100
	view := newTerminal(s.options())
	s.show(view, release()[1:8])
	before := len(view.live)
	s.Reset()
	s.width = 30 // the lines of before wrap now: into four rows, at 100 cells
	view.tick()
	rows := 0
	if _, err := fmt.Sscanf(s.String(), "\r\x1b[%dA", &rows); err != nil || rows <= before {
		t.Errorf("after narrowing, the cursor goes up %d rows for %d lines that wrap: %q", rows, before, s.String())
	}
}

func TestTerminalSkipsFramesThatShowNothingNew(t *testing.T) {
	t.Parallel()
	s := newFixture()
	view := newTerminal(s.options())
	s.show(view, release()[1:7])
	drawn := s.Len()
	view.tick()
	if s.Len() != drawn {
		t.Errorf("a tick in the same second wrote %q", s.String()[drawn:])
	}
	for n := range 1000 { // within one instant
		view.Event(action.Event{Time: s.now, Kind: action.Progress, Action: "compile linux/amd64", Done: int64(n), Total: 3310})
	}
	if s.Len() != drawn {
		t.Errorf("1000 events in an instant wrote %q", s.String()[drawn:])
	}
	s.now = s.now.Add(frameMinimum)
	view.tick()
	if s.Len() == drawn {
		t.Error("what is new is never drawn")
	}
}

func TestTerminalShowsManyJobsInFewLines(t *testing.T) {
	t.Parallel()
	s := newFixture()
	view := newTerminal(s.options())
	for n := range 40 {
		view.Event(action.Event{Time: at(0), Kind: action.Started, Action: fmt.Sprintf("image %d", n), Phase: "image"})
	}
	s.now = at(1)
	view.tick()
	if n := len(view.live); n != maxJobs+2 {
		t.Errorf("%d live lines for 40 jobs, want %d", n, maxJobs+2)
	}
	if more := colors.ReplaceAllString(view.live[maxJobs], ""); more != "  … and 32 more" {
		t.Errorf("line for the rest: %q", more)
	}
}

// Many goroutines may use a refresher, and it may be closed at any moment; -race checks it.
func TestRefresherIsSafe(t *testing.T) {
	t.Parallel()
	s := newFixture()
	o := s.options()
	o.Now = time.Now
	view := refreshed(newTerminal(o), time.Millisecond)
	done := make(chan bool)
	for range 4 {
		go func() {
			for _, ev := range release() {
				view.Event(ev)
			}
			done <- true
		}()
	}
	for range 4 {
		<-done
	}
	for range 2 {
		if err := view.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wrote := s.Len()
	view.tick(time.Millisecond) // the timer may have run out just before
	if s.Len() != wrote {
		t.Error("a tick after Close")
	}
}

// A screen is a terminal of unlimited height, with just enough functions to see what is left on it.
type screen struct {
	width    int
	rows     []string
	row, col int
}

var sequence = regexp.MustCompile(`^\x1b\[([0-9;]*)([A-Za-z])`)

func (s *screen) write(t *testing.T, text string) {
	t.Helper()
	if s.rows == nil {
		s.rows = []string{""}
	}
	for len(text) > 0 {
		if m := sequence.FindStringSubmatch(text); m != nil {
			text = text[len(m[0]):]
			switch m[2] {
			case "A":
				n, _ := strconv.Atoi(m[1])
				if n > s.row {
					t.Fatalf("the cursor goes up %d rows from row %d", n, s.row)
				}
				s.row -= n
			case "K":
				s.rows[s.row] = truncateCells(s.rows[s.row], s.col)
			case "J":
				s.rows = s.rows[:s.row+1]
				s.rows[s.row] = truncateCells(s.rows[s.row], s.col)
			case "m":
			default:
				t.Fatalf("unexpected escape sequence %q", m[0])
			}
			continue
		}
		for i, r := range text { // just the first
			s.put(r)
			text = text[i+len(string(r)):]
			break
		}
	}
}

func (s *screen) put(r rune) {
	switch r {
	case '\r':
		s.col = 0
		return
	case '\n':
		s.down()
		return
	}
	if n := displaywidth.Rune(r); s.col+n > s.width && s.col > 0 {
		s.down()
	}
	before, after := truncateCells(s.rows[s.row], s.col), []rune(s.rows[s.row])
	rest := ""
	if n := len([]rune(before)); n+1 < len(after) {
		rest = string(after[n+1:])
	}
	s.rows[s.row] = before + string(r) + rest
	s.col += displaywidth.Rune(r)
}

func (s *screen) down() {
	s.row, s.col = s.row+1, 0
	if s.row == len(s.rows) {
		s.rows = append(s.rows, "")
	}
}

func truncateCells(text string, width int) string {
	n := 0
	for i, r := range text {
		if n += displaywidth.Rune(r); n > width {
			return text[:i]
		}
	}
	return text
}
