package console

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/term"

	"slipway.build/pkg/mechanism/action"
)

// A View shows events as they come.
type View interface {
	// Event shows one event. It may be called by several goroutines.
	Event(action.Event)

	// Close leaves the terminal as it should be left, whether or not the run came to its end, and returns the
	// first error met when writing. Calling it twice is harmless. No Event may follow.
	Close() error
}

// A Mode names a view. Its zero value is Auto. A *Mode is a flag.Value and a pflag.Value.
type Mode string

const (
	Auto     Mode = "auto" // Terminal if Out is one that can be drawn on, else Plain
	Terminal Mode = "terminal"
	Plain    Mode = "plain"
	JSON     Mode = "json"
)

// Set is the flag's way to set a mode.
func (m *Mode) Set(name string) error {
	switch mode := Mode(name); mode {
	case Auto, Terminal, Plain, JSON:
		*m = mode
		return nil
	}
	return fmt.Errorf("progress %q: not one of auto, terminal, plain, json", name)
}

func (m *Mode) String() string { return string(*m) }

// Type is what pflag shows as the kind of the flag's value.
func (m *Mode) Type() string { return "mode" }

// Options choose and furnish a view. The zero value is right for a command: os.Stdout, os.Stderr, automatic.
type Options struct {
	Out io.Writer // progress and the closing report; nil is os.Stdout
	Err io.Writer // what the tools print, and the run's error; nil is os.Stderr

	Mode    Mode
	Verbose int // 1 and above: skipped actions, members of batches, outputs and what made them are listed, too

	// Artifacts tells which of the outputs are what the user asked for, and so belong into the closing table.
	// The path is an action.File's. Nil shows no table.
	Artifacts func(path string) bool

	// The rest is found out from Out and the process's environment when nil.

	Size   func() (width, height int) // of the terminal, in cells; asked for every frame
	Now    func() time.Time           // for what happens between events
	Getenv func(string) string        // NO_COLOR, TERM, CI
}

// New returns the view that the options ask for. Close it.
func New(o Options) View {
	o = o.furnished()
	switch o.Mode {
	case JSON:
		return &jsonLines{out: o.Out}
	case Terminal:
		return pulsed(newTerminal(o), frameInterval)
	case Plain:
		return pulsed(newPlain(o), time.Second)
	}
	panic("console: unknown mode " + string(o.Mode))
}

// furnished is o with everything set, and a mode that is not Auto.
func (o Options) furnished() Options {
	if o.Out == nil {
		o.Out = os.Stdout
	}
	if o.Err == nil {
		o.Err = os.Stderr
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Artifacts == nil {
		o.Artifacts = func(string) bool { return false }
	}
	if o.Size == nil {
		o.Size = func() (int, int) { return sizeOf(o.Out) }
	}
	switch {
	case o.Mode != Auto && o.Mode != Terminal && o.Mode != "":
	case o.drawable(o.Mode == Terminal):
		o.Mode = Terminal
	default:
		o.Mode = Plain
	}
	return o
}

// drawable tells whether lines can be redrawn on Out. A user who asked for it is believed that Out is a
// terminal, but not that a dumb one can move its cursor.
func (o Options) drawable(asked bool) bool {
	if o.Getenv("TERM") == "dumb" {
		return false
	}
	if asked {
		return true
	}
	// CI systems that allocate a terminal keep a log all the same. Windows' consoles understand escape
	// sequences only when told to, which is not worth it here.
	if ci := o.Getenv("CI"); ci != "" && ci != "false" || o.Getenv("TERM") == "" || runtime.GOOS == "windows" {
		return false
	}
	file, ok := o.Out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// sizeOf is the terminal's size, or that of the classic one if w won't tell.
func sizeOf(w io.Writer) (width, height int) {
	if file, ok := w.(*os.File); ok {
		if width, height, err := term.GetSize(int(file.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return 80, 24
}

// A sink writes until the first error, and keeps that.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) print(text string) {
	if s.err != nil || text == "" {
		return
	}
	_, s.err = io.WriteString(s.w, text)
}

// ended is text with a newline at its end.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}
