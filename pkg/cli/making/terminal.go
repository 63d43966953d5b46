package making

import (
	"os"
	"os/signal"

	"golang.org/x/term"

	"slipway.build/pkg/cli/console"
	"slipway.build/pkg/mechanism/engine"
)

// terminal returns this process's terminal, for a command in a container, or nil if it has none. While the command runs, it gets
// every key; before and after, Ctrl-C ends this process's own work.
func (o commands) terminal() *engine.Terminal {
	in, out := int(os.Stdin.Fd()), int(os.Stdout.Fd())
	if o.Out != os.Stdout || !term.IsTerminal(in) || !term.IsTerminal(out) || !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil
	}
	size := func() (width, height int) { return console.TerminalSize(os.Stdout) }
	return &engine.Terminal{Size: size, Resized: func(set func(width, height int)) (stop func()) {
		before, err := term.MakeRaw(in)
		changed := make(chan os.Signal, 1)
		notifyResized(changed)
		go func() {
			for range changed {
				set(size())
			}
		}()
		return func() {
			signal.Stop(changed)
			close(changed)
			if err == nil {
				_ = term.Restore(in, before) // it worked with this terminal a moment ago
			}
		}
	}}
}
