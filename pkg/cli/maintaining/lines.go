package maintaining

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/maintain/bump"
	"slipway.build/pkg/maintain/lines"
	"slipway.build/pkg/maintain/patching"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/upstream"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
)

// An OnLines is a command that also runs on each line.
type OnLines struct {
	Command  string                     // "patch add"
	Changes  bool                       // the tree: what it changes is committed
	Message  func(answer []byte) string // of the commit, made of what the command answers as JSON; nil: the command line
	Conflict func(error) bool           // whether an error is a conflict, which is left for a person; may be nil
	Leave    string                     // the flag by which the command leaves a conflict
	Resolve  string                     // the command that goes on with it
	Args     func(*lines.Line) []string // what a line adds to the arguments; may be nil
	Without  []string                   // flags that mean nothing on several lines, such as a file that each would overwrite
}

// EachLine are the commands that slipway runs on lines.
var EachLine = []OnLines{
	{Command: "patch add", Changes: true, Message: addedPatch,
		Conflict: session.Is[*patch.Conflict], Leave: "--force", Resolve: "patch edit", Without: []string{"force"}},
	{Command: "override", Changes: true},
	{Command: "outdated"},
	{Command: "vulns", Args: lineRelease, Without: []string{"openvex", "author", "sarif"}},
}

func addedPatch(answer []byte) string {
	var a patching.Added
	if json.Unmarshal(answer, &a) != nil || a.Title == "" {
		return "Add " + a.Patch
	}
	return fmt.Sprintf("%s\n\nAdd %s.", a.Title, a.Patch)
}

// lineRelease names the line's release to commands that take one. By default, they take what was made in the tree.
func lineRelease(l *lines.Line) []string {
	if dir := l.ReleaseFolder(); dir != "" {
		return []string{dir}
	}
	return nil
}

// NewLines returns the command for lines, with those of each. Fresh returns slipway's other commands, for one run.
func NewLines(s *session.Session, fresh func(session.IO) *cobra.Command, each []OnLines) *cobra.Command {
	o := commands{s}
	var names []string
	c := &cobra.Command{
		Use:   "lines",
		Short: "Show the lines of a distribution, or do something on each",
		Long: `lines shows the lines that release/lines.yaml names: for each minor version of Kubernetes its version, how much is behind (slipway
outdated lists it), the days until support ends, and who owns it. Without that file, the one in the user's configuration folder counts,
slipway/lines.yaml.

Its subcommands do the same as slipway's of their names, on each line: in a work tree of its own, _output/lines/NAME. Your checkouts
stay as they are. What changes is committed on the branch lines/NAME, which begins at the line's. Merge it when you like; until then, the
next command goes on from it. Nothing is pushed. If it fails or conflicts on one line, the others go on, and the exit code is 1.`,
		Example: "  slipway lines\n  slipway lines patch add fix.patch\n  slipway lines outdated --line acme-1.36",
		Args:    session.OnlySubcommands,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.inLines(c.Context(), names, func(root string, list []*lines.Line) error { return o.showLines(c.Context(), root, list) })
		},
	}
	c.PersistentFlags().StringArrayVar(&names, "line", nil, "only the line of this `name`; may be given several times")
	model := fresh(s.IO)
	for _, e := range each {
		sub, _, err := model.Find(strings.Fields(e.Command))
		if err != nil || sub.CommandPath() != model.Name()+" "+e.Command {
			panic("no command is called " + e.Command)
		}
		parent := c
		if group, _, ok := strings.Cut(e.Command, " "); ok {
			if parent, _, err = c.Find([]string{group}); err != nil || parent == c {
				parent = &cobra.Command{Use: group, Short: sub.Parent().Short + ", on each line", Args: session.OnlySubcommands,
					RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
				c.AddCommand(parent)
			}
		}
		on := &cobra.Command{
			Use: sub.Use, Short: sub.Short + ", on each line", Args: sub.Args,
			Long: fmt.Sprintf("%s does on each line what \"slipway %s\" does in one tree: see its help, and that of \"slipway lines\".",
				sub.Name(), e.Command),
			RunE: func(c *cobra.Command, args []string) error {
				return o.inLines(c.Context(), names, func(root string, list []*lines.Line) error {
					return o.onEach(c, e, args, fresh, list)
				})
			},
		}
		sub.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if !slices.Contains(e.Without, f.Name) {
				on.Flags().AddFlag(f)
			}
		})
		parent.AddCommand(on)
	}
	return c
}

// inLines reads the lines and calls f with those of some names, while no other command works on lines.
func (o commands) inLines(ctx context.Context, names []string, f func(root string, list []*lines.Line) error) error {
	root, err := project.FindRoot(o.Dir)
	if err != nil {
		return err
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return err
	}
	all, err := lines.Read(ctx, root, filepath.Join(config, "slipway", "lines.yaml"), o.Getenv)
	if err != nil {
		return err
	}
	list, err := lines.Choose(all, names)
	if err != nil {
		return err
	}
	return action.Locked(ctx, root, lines.State, o.NoteWaiting, func() error { return f(root, list) })
}

// A lineState is what lines shows of a line.
type lineState struct {
	*lines.Line
	Version string   `json:"version,omitempty"` // of Kubernetes
	Behind  int      `json:"behind"`            // of Items
	Items   int      `json:"items"`
	Days    int      `json:"days"` // until the end of support; negative after it
	Waiting int      `json:"waiting"`
	Notes   []string `json:"notes,omitempty"`
	Error   string   `json:"error,omitempty"`
}

func (o commands) showLines(ctx context.Context, root string, list []*lines.Line) error {
	var states []*lineState
	failed := 0
	for _, l := range list {
		s := &lineState{Line: l, Days: l.End.After(o.Now())}
		if s.Days < 0 {
			s.Notes = append(s.Notes, fmt.Sprintf("SUPPORT ENDED %s AGO, on %s", strings.ToUpper(session.Count(-s.Days, "day")), l.End))
		} else if l.Maintenance != "" && l.Maintenance.After(o.Now()) <= 0 {
			s.Notes = append(s.Notes, "only security fixes since "+string(l.Maintenance))
		}
		if err := o.lineState(ctx, s); err != nil {
			if ctx.Err() != nil {
				return err
			}
			failed++
			s.Error = err.Error()
			s.Notes = append(s.Notes, firstLine(s.Error))
		}
		states = append(states, s)
	}
	if err := o.Answer(states, func(w io.Writer) error {
		return session.WriteTable(w, "LINE\tVERSION\tBEHIND\tDAYS LEFT\tOWNER\tNOTE", func(row func(...string)) {
			for _, s := range states {
				behind := "-"
				if s.Items > 0 {
					behind = fmt.Sprintf("%d of %d", s.Behind, s.Items)
				}
				row(s.Name, cmp.Or(s.Version, "-"), behind, fmt.Sprint(s.Days), s.Owner, strings.Join(s.Notes, "; "))
			}
		})
	}); err != nil || failed == 0 {
		return err
	}
	return fmt.Errorf("%d of %s failed", failed, session.Count(len(list), "line"))
}

func (o commands) lineState(ctx context.Context, s *lineState) error {
	w, err := s.Open(ctx, false)
	if err != nil {
		return err
	}
	s.Waiting = w.Waiting
	s.Notes = append(s.Notes, o.notes(w)...)
	if s.Version, err = kubernetes(w); err != nil {
		return err
	}
	items, err := bump.Outdated(ctx, bump.Options{
		Root: w.Dir, Debian: debian.SourcesFrom(o.Getenv), Say: func(text string) { o.Say(s.Name + ": " + text) },
	})
	if err != nil {
		return err
	}
	s.Items = len(items)
	for _, i := range items {
		if i.Behind {
			s.Behind++
			if i.Kind == "kubernetes" {
				s.Notes = append(s.Notes, cmp.Or(i.Should, i.Newest)+" is there")
			}
		}
	}
	return nil
}

// notes says what there is to know of a work tree.
func (o commands) notes(w *lines.Work) (notes []string) {
	if w.Waiting > 0 {
		notes = append(notes, session.Count(w.Waiting, "commit")+" on "+w.Branch)
	}
	if w.Unfinished {
		notes = append(notes, o.relative(w.Dir)+" has changes that are not committed")
	}
	if w.Note != "" {
		notes = append(notes, w.Note)
	}
	return notes
}

// kubernetes returns the version of Kubernetes in a line's work tree. It must be one that this slipway makes releases of, and of the
// line's minor.
func kubernetes(w *lines.Work) (string, error) {
	declared, err := catalog.Load(w.Dir)
	if err != nil {
		return "", err
	}
	m, err := module.Load(w.Dir, declared.Module)
	if err != nil {
		return "", err
	}
	for _, r := range m.Requires {
		if r.Path == upstream.Kubernetes {
			if err := catalog.CheckKubernetes(r.Version); err != nil {
				return r.Version, err
			}
			if !strings.HasPrefix(r.Version, "v"+string(w.Line.Minor)+".") {
				return r.Version, fmt.Errorf("the line is for %s, but its tree has Kubernetes %s", w.Line.Minor, r.Version)
			}
			return r.Version, nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", filepath.Join(m.Dir, "go.mod"), upstream.Kubernetes)
}

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
	message := strings.Join(slices.Concat([]string{"slipway", r.Command}, r.args, r.flags), " ")
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
