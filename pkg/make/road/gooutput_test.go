package road

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/action"
)

// A recorder keeps what is reported.
type recorder struct {
	lines []string
	unit  action.Unit
}

func (r *recorder) event(e action.Event) {
	switch e.Kind {
	case action.Progress:
		r.lines, r.unit = append(r.lines, fmt.Sprintf("%d of %d %s", e.Done, e.Total, e.Text)), e.Unit
	case action.Output:
		r.lines = append(r.lines, "output "+e.Text)
	}
}

func TestPackageNamesAreProgressAndOtherLinesAreOutput(t *testing.T) {
	t.Parallel()
	var r recorder
	o := &GoOutput{Report: r.event}
	// However it is cut into writes.
	for _, part := range []string{
		"go: downloading k8s.io/api v0.36.3\nruntime/", "internal\nk8s.io/api/core/v1\n", "\n# k8s.io/x\n./a.go:1:2: unde", "fined: b\r\n",
		"ld: no newline at the end",
	} {
		if n, err := o.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	o.Flush()
	o.Flush() // nothing is left
	want := []string{
		"0 of 0 downloading k8s.io/api v0.36.3", "1 of 0 runtime/internal", "2 of 0 k8s.io/api/core/v1",
		"output # k8s.io/x", "output ./a.go:1:2: undefined: b", "output ld: no newline at the end",
	}
	if diff := cmp.Diff(want, r.lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if r.unit != action.Packages {
		t.Errorf("the progress counts %q", r.unit)
	}
}

func TestEndlessLineIsCut(t *testing.T) {
	t.Parallel()
	const maxLine = 1 << 20 // see package tail
	var r recorder
	o := &GoOutput{Report: r.event}
	for range 3 {
		_, _ = o.Write([]byte(strings.Repeat(" x", maxLine/2)))
	}
	o.Flush()
	if len(r.lines) != 1 || len(r.lines[0]) != maxLine+len("output ") {
		t.Errorf("%d lines, the first of %d bytes", len(r.lines), len(r.lines[0]))
	}
}

func TestPackagesOfTestsAreNotCounted(t *testing.T) {
	t.Parallel()
	c := Compilation{Spec: Spec{Tags: []string{"selinux"}}}
	if args := listStale(c, []Target{{Binary: Binary{Package: "./a"}}, {Binary: Binary{Package: "./b"}}}); !strings.HasSuffix(
		strings.Join(args, " "), " ./a ./b") || args[0] != "list" {
		t.Errorf("arguments %q", args)
	}
	if args := listStale(c, []Target{{Binary: Binary{Package: "./a"}}, {Binary: Binary{Package: "./b", Test: true}}}); args != nil {
		t.Errorf("arguments %q", args)
	}
}

func TestWatchEndsWithTheCompile(t *testing.T) {
	t.Parallel()
	o := &GoOutput{Report: func(action.Event) {}}
	stop := o.WatchTotal(t.Context(), Compilation{}, nil, func(context.Context, []string) ([]byte, error) {
		t.Error("packages are counted at once")
		return nil, nil
	})
	stop()
}
