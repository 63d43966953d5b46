package console

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"golang.org/x/term"

	"slipway.build/pkg/mechanism/action"
)

// A View shows events as they come.
type View interface {
	// Event shows one event. It may be called by several goroutines.
	Event(action.Event)

	// Close restores the terminal, whether or not the run ended, and returns the first error of writing. It may be called
	// twice. No Event may follow.
	Close() error
}

// A Mode names a view. Its zero value is Auto. A *Mode is a flag.Value and a pflag.Value.
type Mode string

const (
	Auto     Mode = "auto" // Terminal if Out is one whose cursor can be moved, else Plain
	Terminal Mode = "terminal"
	Plain    Mode = "plain"
	JSON     Mode = "json"
)

// Set sets the mode by its name.
func (m *Mode) Set(name string) error {
	switch mode := Mode(name); mode {
	case Auto, Terminal, Plain, JSON:
		*m = mode
		return nil
	}
	return fmt.Errorf("progress %q: not one of auto, terminal, plain, json", name)
}

func (m *Mode) String() string { return string(*m) }

// Type returns what pflag shows as the kind of the flag's value.
func (m *Mode) Type() string { return "mode" }

// Options configure a view. Out, Err and Getenv must be set.
type Options struct {
	Out io.Writer // progress and the closing report
	Err io.Writer // the tools' output and the run's error

	Mode    Mode
	Verbose int // 1 and above: list skipped actions, outputs and what made them, too

	// Artifacts reports whether the user asked for the output at a path (an action.File's). The closing table
	// lists those. Nil shows no table.
	Artifacts func(path string) bool
	Getenv    func(string) string // NO_COLOR, TERM, CI

	Size func() (width, height int) // of the terminal, in cells; called for every frame; nil is that of Out
	Now  func() time.Time           // the time between events; nil is time.Now
}

// New returns the view that the options ask for. The caller closes it.
func New(o Options) View {
	o = o.withDefaults()
	switch o.Mode {
	case JSON:
		return newJSON(o.Out)
	case Terminal:
		return refreshed(newTerminal(o), frameInterval)
	case Plain:
		return refreshed(newPlain(o), time.Second)
	}
	panic("console: unknown mode " + string(o.Mode))
}

// withDefaults returns o with everything set, and a mode that is not Auto.
func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Size == nil {
		o.Size = func() (int, int) { return TerminalSize(o.Out) }
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

// drawable reports whether lines can be redrawn on Out. If the user asked for it, Out need not look like a terminal, but a
// dumb terminal still cannot move its cursor.
func (o Options) drawable(asked bool) bool {
	if o.Getenv("TERM") == "dumb" {
		return false
	}
	if asked {
		return true
	}
	// CI systems that allocate a terminal still keep a log. Windows' consoles understand escape sequences only after a system
	// call, which is not worth it here.
	if ci := o.Getenv("CI"); ci != "" && ci != "false" || o.Getenv("TERM") == "" || runtime.GOOS == "windows" {
		return false
	}
	file, ok := o.Out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// TerminalSize returns the terminal's width and height in cells, or 80x24 if w is not a terminal.
func TerminalSize(w io.Writer) (width, height int) {
	if file, ok := w.(*os.File); ok {
		if width, height, err := term.GetSize(int(file.Fd())); err == nil && width > 0 && height > 0 {
			return width, height
		}
	}
	return 80, 24
}
