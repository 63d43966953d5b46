package maintaining

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/maintain/bump"
	"slipway.build/pkg/maintain/kit"
	"slipway.build/pkg/mechanism/atomicdir"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/git"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/self"
)

// An initRun holds the flags of slipway init.
type initRun struct {
	kit.Options
	kubernetes, platforms, ci string
}

func newInit(o commands) *cobra.Command {
	var run initRun
	c := &cobra.Command{
		Use:   "init folder",
		Short: "Lay out a distribution of Kubernetes: a small tree of its own",
		Long: `init makes a folder with all that a distribution needs: thin mains (cmd), images, the list of what a release holds (release),
files for make, and a go.mod with this version of slipway. There, make quick-release makes a release.

The folder must not exist, or be empty but for a git repository. If it is none, it becomes one, with a first commit.

slipway is named in go.mod by the version that runs, or, if that was compiled in a checkout, by the checkout's folder.`,
		Example: "  slipway init acme --module acme.example/kubernetes\n" +
			"  slipway init acme --module acme.example/kubernetes --kubernetes v1.37.1 --without traefik,metrics-server \\\n" +
			"    --platforms \"linux/amd64 linux/arm64\" --registry registry.acme.example",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && run.Module == "" {
				return errors.New("--module is missing: the path before those of the distribution's Go modules")
			}
			return cobra.ExactArgs(1)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error { return o.init(c.Context(), args[0], run) },
	}
	flags := c.Flags()
	flags.StringVar(&run.Module, "module", "", "the `path` before those of the distribution's Go modules: acme.example/kubernetes")
	flags.StringVar(&run.Name, "name", "", "what people call it (default the folder's name)")
	flags.StringVar(&run.kubernetes, "kubernetes", "", "version of Kubernetes, as for slipway bump (default the toolchain's)")
	flags.StringSliceVar(&run.Without, "without", nil, "components, other projects and addons to leave out: traefik,metrics-server")
	flags.StringVar(&run.platforms, "platforms", "", "platforms of the release, as in \"linux/amd64 linux/arm64\" (default all)")
	flags.StringVar(&run.Registry, "registry", "", "registry whose name the images carry (default registry.k8s.io)")
	flags.StringVar(&run.ci, "ci", "", "write pipelines for a `service`, too: github, gitlab or prow")
	flags.StringVar(&run.FIPS, "fips", "", "version of Go's cryptographic module, validated for FIPS 140-3: v1.0.0 (default none)")
	flags.StringVar(&run.Toolchain.Folder, "toolchain", "", "`folder` of slipway's sources, instead of the version that runs")
	return c
}

func (o commands) init(ctx context.Context, dir string, run initRun) (err error) {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(o.Dir, dir)
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	repository, err := isFree(dir)
	if err != nil {
		return err
	}
	if run.Name == "" {
		run.Name = filepath.Base(dir)
	}
	run.Platforms = strings.Fields(strings.ReplaceAll(run.platforms, ",", " "))
	if run.Toolchain, err = o.thisSlipway(ctx, dir, run.Toolchain.Folder); err != nil {
		return err
	}
	files, err := kit.Files(run.Options)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-") // where relative paths in go.mod are right, too
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := errors.Join(os.Chmod(tmp, 0o755), kit.Write(ctx, tmp, files)); err != nil {
		return err
	}
	c, err := catalog.Load(tmp)
	if err != nil {
		return badrequest.Mark(fmt.Errorf("what is chosen does not make a release: %w", err))
	}
	if run.ci != "" {
		var platforms []string
		for _, p := range c.AllPlatforms() {
			platforms = append(platforms, p.String())
		}
		added, err := pipelineFiles(run.ci, platforms)
		if err != nil {
			return err
		}
		if err := kit.Write(ctx, tmp, added); err != nil {
			return err
		}
		files = append(files, added...)
	}
	if run.kubernetes != "" {
		if err := o.moveTo(ctx, tmp, run.kubernetes); err != nil {
			return err
		}
	}
	if !repository {
		if err := o.firstCommit(ctx, tmp, run.Toolchain); err != nil {
			return err
		}
	}
	if err := put(tmp, dir); err != nil {
		return err
	}
	next := "cd " + session.Quote(dir) + " && "
	if repository {
		next += "git add --all && git commit && "
	}
	fmt.Fprintf(o.Out, "%s is a distribution of Kubernetes, with %s. Next: %smake quick-release\n",
		run.Name, session.Count(len(files), "file"), next)
	return nil
}

// isFree returns an error unless a folder does not exist, or is empty but for a repository. It reports whether it is the top of one: a
// tree must be.
func isFree(dir string) (repository bool, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, badrequest.Mark(err)
	}
	for _, e := range entries {
		if e.Name() != ".git" {
			return false, badrequest.Mark(fmt.Errorf("%s is not empty: it has %s; name a new folder", dir, e.Name()))
		}
	}
	if _, err := os.Stat(filepath.Dir(dir)); err != nil {
		return false, badrequest.Mark(err)
	}
	return len(entries) > 0, nil
}

// checkoutOf returns the checkout of slipway that a program is in, or "". It is below _output, where bin may be a link to another folder.
func checkoutOf(exe string) string {
	folder := filepath.Dir(exe)
	for !self.IsOwn(folder) {
		if folder == filepath.Dir(folder) {
			return ""
		}
		folder = filepath.Dir(folder)
	}
	return folder
}

// thisSlipway returns how a distribution in dir names the slipway that runs: by its version, or by a folder of its sources.
func (o commands) thisSlipway(ctx context.Context, dir, folder string) (kit.Toolchain, error) {
	t := kit.Toolchain{Path: self.Module}
	if folder == "" {
		running, err := self.Read(ctx, filepath.Dir(dir), o.Getenv)
		if err != nil {
			return t, err
		}
		if running.Module.Path == self.Module {
			t.Version, t.Sum = running.Module.Version.Version, running.Module.Sum
			return t, nil
		}
		exe, err := os.Executable()
		if err != nil {
			return t, err
		}
		if folder = checkoutOf(exe); folder == "" {
			return t, errors.New("this slipway has no version, and is in no checkout's _output/bin: " +
				"name the folder of its sources with --toolchain")
		}
	}
	abs, err := filepath.Abs(folder)
	if err != nil {
		return t, err
	}
	if !self.IsOwn(abs) {
		return t, badrequest.Mark(fmt.Errorf("%s does not hold the module %s", abs, self.Module))
	}
	if t.Folder, err = filepath.Rel(dir, abs); err != nil {
		t.Folder = abs
	}
	return t, nil
}

// moveTo moves a new tree to a version of Kubernetes.
func (o commands) moveTo(ctx context.Context, tmp, version string) error {
	r, err := git.At(tmp)
	if err != nil {
		return err
	}
	if err := r.Init(ctx); err != nil {
		return err
	}
	if _, err := r.Commit(ctx, "kit"); err != nil {
		return err
	}
	report, err := bump.Run(ctx, bump.Options{
		Root: tmp, Targets: []string{version}, Debian: debian.SourcesFrom(o.Getenv), LocksBy: "`make update-debian-locks`", Getenv: o.Getenv,
		Say: o.Say,
	})
	if err != nil {
		return err
	}
	for _, m := range report.Moves {
		if m.To == bump.LeftOut {
			o.Say(fmt.Sprintf("%s is left out: %s", m.What, m.Why))
		}
	}
	return errors.Join(os.RemoveAll(filepath.Join(tmp, ".git")), os.RemoveAll(filepath.Join(tmp, "_output")))
}

// firstCommit makes a repository of a new tree, as its user would.
func (o commands) firstCommit(ctx context.Context, tmp string, t kit.Toolchain) error {
	r, err := git.Open(tmp, os.Environ()...)
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "--all"}} {
		if _, err := r.Run(ctx, args...); err != nil {
			return err
		}
	}
	message := "A distribution of Kubernetes, laid out by slipway " + t.Version
	if _, err := r.Run(ctx, "commit", "--quiet", "-m", strings.TrimSpace(message)); err != nil {
		o.Say(fmt.Sprintf("the files are not committed: %v", err))
	}
	return nil
}

// put moves a finished tree to where it belongs: at once, unless a repository is there already.
func put(tmp, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, ".git")); errors.Is(err, fs.ErrNotExist) {
		return atomicdir.Replace(tmp, dir)
	}
	entries, err := os.ReadDir(tmp)
	if err != nil {
		return err
	}
	slices.Reverse(entries) // Makefile after release
	for _, e := range entries {
		if err := os.Rename(filepath.Join(tmp, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
