package maintaining

import (
	"cmp"
	"context"
	"encoding/json"
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
