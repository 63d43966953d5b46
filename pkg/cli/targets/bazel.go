package targets

import (
	"context"
	"fmt"
	"os"
	"strings"

	"slipway.build/pkg/cli/making"
)

// BazelBuild compiles every component with Bazel, as `bazel build //cmd/...` does where Bazel is installed.
func BazelBuild(ctx context.Context) error {
	return bazel(ctx, "--", "build", "--config=release", "//cmd/...")
}

// BazelRelease makes the tarballs of quick-release with Bazel, whose remote cache can hold them, in _output/bazel/release-tars.
func BazelRelease(ctx context.Context) error {
	return bazel(ctx, "--output=_output/bazel/release-tars", "--", "build", "--config=release", "//release:release-tars")
}

// BazelTest runs tests by Bazel: those of this tree's own targets, or Kubernetes' own of WHAT=k8s.io/kubernetes/pkg/scheduler/...
func BazelTest(ctx context.Context) error {
	for _, name := range []string{"KUBE_RACE", "KUBE_TIMEOUT", "KUBE_TEST_ARGS", "KUBE_COVER"} {
		if os.Getenv(name) != "" {
			return fmt.Errorf("%s is for tests by go test: unset it, and give Bazel's own flags to `slipway bazel -- test`", name)
		}
	}
	what := strings.Fields(os.Getenv("WHAT"))
	if len(what) == 0 {
		what = []string{"//..."}
		fmt.Fprintln(os.Stderr, "make: testing //..., this tree's own targets; WHAT=k8s.io/client-go/... tests packages of Kubernetes")
	}
	patterns, err := making.BazelPatterns(ctx, std(), ".", what)
	if err != nil {
		return err
	}
	return bazel(ctx, append([]string{"--", "test", "--build_tests_only", "--keep_going", "--"}, patterns...)...)
}

func bazel(ctx context.Context, args ...string) error {
	return orSay(ctx, append([]string{"bazel"}, args...)...)
}
