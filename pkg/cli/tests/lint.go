package tests

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/maintain/kubetest"
	"slipway.build/pkg/maintain/lint"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/tree/catalog"
)

func newLint(o commands) *cobra.Command {
	var platforms, sarif string
	var all bool
	c := &cobra.Command{
		Use:   "lint [package...]",
		Short: "Look for mistakes in the tree's code and in what patches change",
		Long: `lint analyzes the packages that you name, or else those of the components' module, and always those in which the tree's patches
change Kubernetes, for every platform of release.yaml. Packages are named as for slipway test.

It reports what go vet finds, and what does not compile. In Kubernetes, it also reports what logcheck and forbidigo find with upstream's
configuration, and, of packages that patches change, imports that an .import-restrictions file forbids, feature gates that are not in
upstream's list, and fields of the API that are removed, renumbered or of another type. Problems of upstream's own, on lines that no
patch adds or changes, are left out unless you use --all. A //nolint comment hides a problem, as in golangci-lint.

The first run for a platform compiles what the packages import. Results are in Go's cache.

It exits with 1 if there are problems.`,
		Example: "  slipway lint\n  slipway lint --platform linux/amd64 k8s.io/kubernetes/pkg/kubelet/... --all --sarif lint.sarif",
		RunE: func(c *cobra.Command, packages []string) error {
			return o.lint(c.Context(), packages, platforms, sarif, all)
		},
	}
	c.Flags().StringVar(&platforms, "platform", o.Getenv("KUBE_BUILD_PLATFORMS"),
		"platforms, as in \"linux/arm64 windows/amd64\" (default $KUBE_BUILD_PLATFORMS, else all of release.yaml)")
	c.Flags().StringVar(&sarif, "sarif", "", "also write the problems to a `file`, as SARIF")
	c.Flags().BoolVar(&all, "all", false, "also report problems of upstream's that no patch brings in")
	return c
}

func (o commands) lint(ctx context.Context, packages []string, platforms, sarif string, all bool) error {
	p, err := o.Open(ctx)
	if err != nil {
		return err
	}
	how := lint.Options{Platforms: p.Catalog.AllPlatforms(), All: all, Say: o.Say}
	if platforms != "" {
		if how.Platforms, err = p.Catalog.Platforms(platforms); err != nil {
			return err
		}
	}
	if len(packages) == 0 {
		packages = []string{"./" + p.Catalog.Module + "/..."}
	}
	testing, err := o.testOptions(p, testRun{})
	if err != nil {
		return err
	}
	var problems []lint.Problem
	err = o.withTests(ctx, p, testing, func(s *kubetest.Sources) error {
		r, err := s.Find(packages)
		if err == nil {
			problems, err = lint.Run(ctx, s, r, how)
		}
		return err
	})
	if err != nil {
		return err
	}
	shown := o.showProblems(problems, how.Platforms)
	if sarif != "" {
		if err := atomicfile.Write(sarif, 0o644, func(w io.Writer) error { return lint.SARIF(w, problems) }); err != nil {
			return err
		}
	}
	return shown
}

// showProblems prints problems, and returns an error if there are any.
func (o commands) showProblems(problems []lint.Problem, on []catalog.Platform) error {
	if problems == nil {
		problems = []lint.Problem{} // in JSON, no problems are an empty list
	}
	err := o.Answer(problems, func(w io.Writer) error { return lint.Text(w, problems, len(on)) })
	if err == nil && len(problems) > 0 {
		err = session.ShownError{Err: errors.New(session.Count(len(problems), "problem"))}
	}
	return err
}
