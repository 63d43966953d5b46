package making

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/plan"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
)

// addQuery adds the flags of the subcommands of cache, which are about components, or else a release of this machine's linux platform.
func (f *makeFlags) addQuery(o commands, c *cobra.Command) {
	addCacheURL(o, c, &f.cache.url)
	c.Flags().StringVar(&f.platforms, "platform", o.Getenv("KUBE_BUILD_PLATFORMS"),
		"platforms, as in \"linux/arm64 darwin/arm64\" (default $KUBE_BUILD_PLATFORMS, else this machine's)")
	c.ValidArgsFunction = o.complete("components")
	_ = c.RegisterFlagCompletionFunc("platform", o.complete("platforms"))
}

// open plans a request for components, and opens the cache. It is nil if none is named and none is needed.
func (f *makeFlags) open(ctx context.Context, o commands, components []string,
	needed bool) (*project.Project, *plan.Plan, *cacheUse, error) {
	p, planned, err := o.plan(ctx, *f, plan.Request{What: strings.Join(components, " "), Tars: len(components) == 0})
	if err != nil {
		return nil, nil, nil, err
	}
	use, err := o.openCache(ctx, f.cache, p)
	if err == nil && use == nil && needed {
		err = errNoCache
	}
	return p, planned, use, err
}

// keys returns the keys of a graph's actions, and messages of the cache.
func (o commands) keys(ctx context.Context, graph *action.Graph, use *cacheUse) ([]action.Keyed, error) {
	use.begin(cacheFlags{}, func(e action.Event) { fmt.Fprintln(o.Err, e.Text) })
	return graph.Keys(ctx, action.Options{Cache: use.results()})
}

func newCacheKeys(o commands) *cobra.Command {
	var f makeFlags
	c := &cobra.Command{
		Use:   "keys [component...]",
		Short: "List the keys of actions, and where their results are",
		Long: `keys lists the actions that make components, or a release of this machine's linux platform, with their keys and where
their results are: here, in the cache ("in cache"), in this tree alone since no cache keeps them ("here only"), or nowhere
("unmade"). A key that depends on what is unmade is "open".`,
		RunE: func(c *cobra.Command, args []string) error {
			_, planned, use, err := f.open(c.Context(), o, args, false)
			if err != nil {
				return err
			}
			defer use.close()
			keys, err := o.keys(c.Context(), planned.Graph, use)
			if err != nil {
				return err
			}
			if o.JSON {
				type line struct {
					Action string          `json:"action"`
					Key    string          `json:"key,omitempty"`
					State  action.KeyState `json:"state"`
				}
				lines := []line{}
				for _, k := range keys {
					lines = append(lines, line{k.Action.ID, k.Key, k.State})
				}
				return o.PrintJSON(lines)
			}
			for _, k := range keys {
				if _, err := fmt.Fprintf(o.Out, "%-64s  %-9s  %s\n", k.Key, k.State, k.Action.ID); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.addQuery(o, c)
	return c
}

func newCacheExplain(o commands) *cobra.Command {
	var f makeFlags
	c := &cobra.Command{
		Use:   "explain ACTION [component...]",
		Short: "Show what an action's key is made of, and where its result is",
		Long: `explain shows the key of an action, where its result is, and everything that the key is made of: the recipe, and the digest
of each input. Two machines that should share a result, and do not, differ in one of these lines. "slipway cache keys" lists actions.`,
		Example: "  slipway cache explain \"compile linux/amd64 kubectl\"",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			_, planned, use, err := f.open(c.Context(), o, args[1:], false)
			if err != nil {
				return err
			}
			defer use.close()
			part, err := planned.Graph.Part(args[:1])
			if err != nil {
				return err
			}
			if len(part.Actions) == 0 {
				var ids []string
				for _, a := range planned.Graph.Actions {
					ids = append(ids, a.ID)
				}
				return badrequest.Mark(fmt.Errorf("no action %q%s: slipway cache keys lists them", args[0],
					suggest.DidYouMean(suggest.Near(args[0], ids))))
			}
			keys, err := o.keys(c.Context(), part, use)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(keys, func(k action.Keyed) bool { return k.Action.ID == args[0] })
			return o.printKey(keys[i])
		},
	}
	f.addQuery(o, c)
	return c
}

func (o commands) printKey(k action.Keyed) error {
	if o.JSON {
		return o.PrintJSON(map[string]any{"action": k.Action.ID, "key": k.Key, "state": k.State, "recipe": k.Recipe,
			"inputs": k.Inputs, "outputs": k.Files})
	}
	fmt.Fprintf(o.Out, "%s\nkey     %s\nstate   %s\n", k.Action.ID, k.Key, k.State)
	for _, line := range k.Recipe {
		fmt.Fprintf(o.Out, "recipe  %s\n", line)
	}
	for _, line := range k.Inputs {
		fmt.Fprintf(o.Out, "input   %s\n", line)
	}
	for _, f := range k.Files {
		fmt.Fprintf(o.Out, "output  %s %s\n", f.SHA256, f.Path)
	}
	return nil
}

func newCachePrefetch(o commands) *cobra.Command {
	var f makeFlags
	c := &cobra.Command{
		Use:   "prefetch [component...]",
		Short: "Fetch all that the cache has, also what lies between",
		Long: `prefetch fetches all results that the cache has of components, or of a release of this machine's linux platform, also those
that a release does not need: binaries, images, licenses. So later runs work without the server. It makes nothing.`,
		RunE: func(c *cobra.Command, args []string) error {
			p, planned, use, err := f.open(c.Context(), o, args, true)
			if err != nil {
				return err
			}
			defer use.close()
			return o.runCached(c.Context(), p, planned.Graph, use, action.Options{FetchOnly: true}, nil)
		},
	}
	f.addQuery(o, c)
	o.MemoryFlag(c)
	return c
}

// runCached runs a graph with a cache.
func (o commands) runCached(ctx context.Context, p *project.Project, graph *action.Graph, use *cacheUse, opts action.Options,
	done func(action.Event)) error {
	view := o.View(func(string) bool { return false })
	defer view.Close()
	show := use.begin(cacheFlags{}, view.Event)
	opts.Budget = o.budget()
	opts.Cache = use.results()
	opts.Locked = true
	opts.Events = func(e action.Event) {
		if done != nil && e.Kind == action.Done {
			done(e)
		}
		show(e)
	}
	if err := action.Locked(ctx, p.Root, project.State, show, func() error { return graph.Run(ctx, opts) }); err != nil {
		return session.ShownError{Err: err}
	}
	return view.Close()
}

func newCacheAudit(o commands) *cobra.Command {
	var f makeFlags
	c := &cobra.Command{
		Use:   "audit N [component...]",
		Short: "Make results that the cache has again, and compare",
		Long: `audit chooses N results at random, of those that the cache has or had of components, or of a release of this machine's linux
platform. It makes them here, and compares the bytes. A difference means that somebody signed what the tree does not make, or that an
action does not always make the same.`,
		Example: "  slipway cache audit 5",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[0])
			if err != nil || n < 1 {
				return badrequest.Mark(fmt.Errorf("audit %s: want the number of results to make again", args[0]))
			}
			p, planned, use, err := f.open(c.Context(), o, args[1:], true)
			if err != nil {
				return err
			}
			defer use.close()
			return o.audit(c.Context(), n, p, planned.Graph, use)
		},
	}
	f.addQuery(o, c)
	return c
}

func (o commands) audit(ctx context.Context, n int, p *project.Project, graph *action.Graph, use *cacheUse) error {
	keys, err := o.keys(ctx, graph, use)
	if err != nil {
		return err
	}
	keys = slices.DeleteFunc(keys, func(k action.Keyed) bool { return k.Origin != action.Cached })
	if len(keys) == 0 {
		return errors.New("the cache has no results of this commit to compare with")
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	keys = keys[:min(n, len(keys))]
	var ids []string
	claimed := map[string]action.File{}
	for _, k := range keys {
		ids = append(ids, k.Action.ID)
		for _, f := range k.Files {
			claimed[f.Path] = f
		}
	}
	part, err := graph.Part(ids)
	if err != nil {
		return err
	}
	var different []string
	made := 0
	err = o.runCached(ctx, p, part, use, action.Options{Audit: ids, Wanted: []string{}}, func(e action.Event) {
		if !slices.Contains(ids, e.Action) {
			return
		}
		made++
		for _, f := range e.Files {
			if c := claimed[f.Path]; c.SHA256 != f.SHA256 {
				different = append(different, fmt.Sprintf("%s: %s has the digest %s here, and %s in the cache", e.Action, f.Path, f.SHA256, c.SHA256))
			}
		}
	})
	if err != nil {
		return err
	}
	if len(different) > 0 {
		return fmt.Errorf("of %s, %d differ:\n%s", session.Count(made, "result"), len(different), strings.Join(different, "\n"))
	}
	if made < len(ids) {
		return fmt.Errorf("only %d of %s were made again", made, session.Count(len(ids), "result"))
	}
	_, err = fmt.Fprintf(o.Out, "%s made again: the same bytes\n", session.Count(made, "result"))
	return err
}
