package tests

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/making"
	"slipway.build/pkg/maintain/kubetest"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
)

func newTestCmd(o commands) *cobra.Command {
	var list bool
	c := &cobra.Command{
		Use:   "test-cmd [suite...]",
		Short: "Run upstream's kubectl command tests",
		Long: `test-cmd compiles kube-apiserver, kube-controller-manager, kubectl, kubectl-convert and etcd, and runs upstream's kubectl command
tests with them: all suites, or the ones that you name. It needs bash, curl, jq, openssl and ss, and port 10257. ETCD_PORT and
SECURE_API_PORT choose the other ports (default 2379 and 6443, or else free ones).`,
		Example: "  slipway test-cmd namespace kubectl_version\n  slipway test-cmd --list",
		RunE: func(c *cobra.Command, suites []string) error {
			return o.testCmd(c.Context(), suites, list)
		},
	}
	c.Flags().BoolVar(&list, "list", false, "list the suites")
	return c
}

func (o commands) testCmd(ctx context.Context, suites []string, list bool) error {
	p, err := o.Open(ctx)
	if err != nil {
		return err
	}
	how, err := o.testOptions(p, testRun{})
	if err != nil {
		return err
	}
	return o.withTests(ctx, p, how, func(s *kubetest.Sources) error {
		if list {
			names, err := s.Suites()
			if err == nil {
				_, err = fmt.Fprintln(o.Out, strings.Join(names, "\n"))
			}
			return err
		}
		programs := func() ([]string, error) {
			if err := kubetest.Require(); err != nil {
				return nil, err
			}
			return making.Programs(ctx, o.Session, kubetest.Programs())
		}
		return s.CommandTests(ctx, suites, programs, how)
	})
}

// withTests opens the tests of a tree, and calls f with them. Meanwhile no other run can use the copy of upstream's repository.
func (o commands) withTests(ctx context.Context, p *project.Project, how kubetest.Options, f func(*kubetest.Sources) error) error {
	if o.Road == "container" {
		return badrequest.Mark(errors.New("tests and lint run on this machine, not in a container: leave out ROAD or --road"))
	}
	tree, err := o.testTree(ctx, p, how)
	if err != nil {
		return err
	}
	return action.Locked(ctx, p.Root, kubetest.Folder, o.NoteWaiting, func() error {
		s, err := kubetest.Open(ctx, tree)
		if err != nil {
			return err
		}
		return f(s)
	})
}
