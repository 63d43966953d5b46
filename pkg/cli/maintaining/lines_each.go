package maintaining

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/maintain/lines"
	"slipway.build/pkg/maintain/patching"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/tree/patch"
)

// A lineResult is what became of a command on a line.
type lineResult struct {
	Line    string          `json:"line"`
	Version string          `json:"version,omitempty"` // of Kubernetes
	Result  string          `json:"result"`
	Branch  string          `json:"branch,omitempty"` // has a new commit
	Note    string          `json:"note,omitempty"`
	Answer  json.RawMessage `json:"answer,omitempty"` // the command's own
	Error   string          `json:"error,omitempty"`

	err error
}

// Results of a command on a line.
const (
	applies  = "applies"
	have     = "upstream has it"
	conflict = "conflict"
	nothing  = "nothing to do"
	failure  = "failed"
	done     = "done"
)

// onEach runs a command on lines, one after another.
func (o commands) onEach(c *cobra.Command, e OnLines, args []string, fresh func(session.IO) *cobra.Command, list []*lines.Line) error {
	run := &lineRun{commands: o, OnLines: e, fresh: fresh, flags: given(c), args: args}
	for _, a := range args {
		if a == "-" {
			var err error
			if run.input, err = io.ReadAll(c.InOrStdin()); err != nil {
				return err
			}
		}
	}
	var results []*lineResult
	bad, requests := 0, 0
	var wrong error // with the request
	for _, l := range list {
		r := run.on(c.Context(), l)
		if c.Context().Err() != nil {
			return context.Cause(c.Context())
		}
		if r.err != nil {
			bad++
			if badrequest.Is(r.err) {
				requests++
				wrong = r.err
			}
		}
		results = append(results, r)
	}
	if requests > 0 && requests == len(list) {
		return wrong // the same on each
	}
	if err := o.Answer(results, func(w io.Writer) error {
		if !e.Changes {
			return nil // each line's output says all
		}
		return session.WriteTable(w, "LINE\tVERSION\tRESULT\tNOTE", func(row func(...string)) {
			for _, r := range results {
				row(r.Line, cmp.Or(r.Version, "-"), r.Result, r.Note)
			}
		})
	}); err != nil || bad == 0 {
		return err
	}
	if requests > 0 && bad == len(list) {
		return wrong
	}
	return fmt.Errorf("%d of %s failed or conflict", bad, session.Count(len(list), "line"))
}

// given returns the flags that a user has given to a command, as arguments.
func given(c *cobra.Command) (args []string) {
	own := c.LocalNonPersistentFlags()
	c.Flags().Visit(func(f *pflag.Flag) {
		if own.Lookup(f.Name) == nil {
			return // of lines, or of all commands
		}
		if list, ok := f.Value.(interface{ GetSlice() []string }); ok {
			for _, value := range list.GetSlice() {
				args = append(args, "--"+f.Name+"="+value)
			}
			return
		}
		args = append(args, "--"+f.Name+"="+f.Value.String())
	})
	return args
}

// A lineRun runs a command on lines.
type lineRun struct {
	commands
	OnLines

	fresh func(session.IO) *cobra.Command
	flags []string
	args  []string
	input []byte // standard input, if the command reads it
}

// on runs the command on a line.
func (r *lineRun) on(ctx context.Context, l *lines.Line) *lineResult {
	result := &lineResult{Line: l.Name, Result: done}
	w, err := l.Open(ctx, r.Changes)
	if err == nil && r.Changes {
		defer func() {
			if err := w.Done(context.WithoutCancel(ctx)); err != nil && result.err == nil {
				result.fail(failure, err)
			}
		}()
	}
	if unfinished, ok := errors.AsType[*lines.UnfinishedError](err); ok {
		result.fail(failure, err)
		result.Note = r.relative(unfinished.Dir) + ": " + unfinished.Why
		return result
	}
	if err == nil {
		result.Version, err = kubernetes(w)
	}
	if err != nil {
		result.fail(failure, err)
		return result
	}
	if !r.Changes {
		if !r.JSON {
			fmt.Fprintf(r.Out, "%s: Kubernetes %s\n", l.Name, result.Version)
		}
		answer, failed := r.run(ctx, w, r.JSON)
		if failed != nil {
			result.fail(failure, failed)
			fmt.Fprintf(r.Err, "slipway: %s: %v\n", l.Name, failed)
		}
		if r.JSON {
			result.Answer = raw(answer)
			return result
		}
		if len(answer) > 0 {
			fmt.Fprintf(r.Out, "%s\n", answer)
		}
		return result
	}
	r.change(ctx, w, result)
	return result
}

// change runs a command that changes a line, and commits what has changed.
func (r *lineRun) change(ctx context.Context, w *lines.Work, result *lineResult) {
	answer, err := r.run(ctx, w, true)
	result.Answer = raw(answer)
	if known, ok := errors.AsType[*patching.NothingError](err); ok {
		result.Result, result.Note = nothing, err.Error()
		if known.Upstream {
			result.Result = have
		}
		return
	}
	if err != nil && r.Conflict != nil && r.Conflict(err) {
		found, _ := errors.AsType[*patch.Conflict](err)
		result.fail(conflict, err)
		if _, err = r.run(ctx, w, true, r.Leave); err == nil {
			err = w.Leave(ctx)
		}
		if err == nil {
			result.Note = fmt.Sprintf("%s; resolve it there and commit: slipway -C %s %s",
				where(found), session.Quote(r.relative(w.Dir)), r.Resolve)
			return
		}
	}
	if err != nil {
		result.fail(failure, err)
		return
	}
	words := []string{"slipway", r.Command}
	for _, word := range slices.Concat(r.args, r.flags) {
		words = append(words, session.Quote(word))
	}
	message := strings.Join(words, " ")
	if r.Message != nil {
		message = r.Message(answer)
	}
	changed, err := w.Commit(ctx, message)
	switch {
	case err != nil:
		result.fail(failure, err)
	case !changed:
		result.Result = nothing
	default:
		result.Result, result.Branch = applies, w.Branch
		result.Note = strings.Join(r.notes(w), "; ")
	}
}

// run runs the command in a line's work tree, and returns what it prints on standard output.
func (r *lineRun) run(ctx context.Context, w *lines.Work, asJSON bool, more ...string) ([]byte, error) {
	var out bytes.Buffer
	process := r.IO
	process.Out, process.Err = &out, &named{to: r.Err, name: w.Line.Name}
	root := r.fresh(process)
	args := slices.Concat(strings.Fields(r.Command), []string{"--directory=" + w.Dir, fmt.Sprintf("--json=%t", asJSON)}, r.flags, more,
		[]string{"--"}, r.args)
	if r.Args != nil && len(r.args) == 0 {
		args = append(args, r.Args(w.Line)...)
	}
	root.SetArgs(args)
	root.SetIn(bytes.NewReader(r.input))
	err := root.ExecuteContext(ctx)
	return out.Bytes(), err
}

// raw returns an answer in JSON, or nothing if it is none.
func raw(answer []byte) json.RawMessage {
	if !json.Valid(answer) {
		return nil
	}
	return answer
}

func where(c *patch.Conflict) string {
	if c.Hunk == 0 {
		return c.File
	}
	return fmt.Sprintf("%s, hunk %d", c.File, c.Hunk)
}

func (r *lineResult) fail(result string, err error) {
	r.Result, r.err, r.Error, r.Note = result, err, err.Error(), firstLine(err.Error())
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// named writes to a stream and puts a name before each line.
type named struct {
	to   io.Writer
	name string
	rest []byte // without a line end yet
}

func (n *named) Write(p []byte) (int, error) {
	n.rest = append(n.rest, p...)
	for {
		line, rest, ok := bytes.Cut(n.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		n.rest = rest
		if _, err := fmt.Fprintf(n.to, "%s: %s\n", n.name, bytes.TrimPrefix(line, []byte("slipway: "))); err != nil {
			return 0, err
		}
	}
}
