package stamp_test

import (
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/tree/stamp"
)

// Bazel stamps binaries with the same values as the Go command.
func TestXDefsWithTheStatusAreTheLinkersFlags(t *testing.T) {
	t.Parallel()
	s := stamp.Stamp{
		Version: "v1.36.3+acme.1", Commit: "0123456789abcdef", TreeState: "clean", Major: "1", Minor: "36",
		Date: time.Unix(1_700_000_000, 0),
	}
	status := map[string]string{}
	for line := range strings.Lines(string(s.WorkspaceStatus())) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok || !strings.HasPrefix(key, "STABLE_") {
			t.Errorf("line %q is not a stable key and its value", line)
		}
		status["{"+key+"}"] = value
	}
	defs := stamp.XDefs()
	for name, key := range defs {
		value, ok := status[key]
		if flag := "-X " + name + "=" + value; !ok || !strings.Contains(" "+s.LDFlags()+" ", " "+flag+" ") {
			t.Errorf("%s is %s, and no flag says %q: %s", name, key, flag, s.LDFlags())
		}
	}
	if got := strings.Count(s.LDFlags(), "-X "); got != len(defs) {
		t.Errorf("%d definitions for %d flags", len(defs), got)
	}
}

func TestStampComesBackFromTheStatus(t *testing.T) {
	t.Parallel()
	want := stamp.Stamp{
		Version: "v1.36.3+acme.1", Commit: "0123456789abcdef", TreeState: "dirty", Major: "1", Minor: "36",
		Date: time.Unix(1_700_000_000, 0).UTC(),
	}
	// Bazel adds lines of its own, and sorts.
	got, err := stamp.FromWorkspaceStatus(append([]byte("BUILD_EMBED_LABEL \nBUILD_HOST h\n"), want.WorkspaceStatus()...))
	if err != nil || got != want {
		t.Errorf("got %+v and error %v, want %+v", got, err, want)
	}
	if _, err := stamp.FromWorkspaceStatus([]byte("BUILD_EMBED_LABEL \nBUILD_HOST h\n")); err == nil ||
		!strings.Contains(err.Error(), "not built as a release") {
		t.Errorf("without a stamp the error is %v", err)
	}
}
