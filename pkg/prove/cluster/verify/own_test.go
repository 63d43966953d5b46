package verify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/prove/cluster"
)

func TestProgramsOfADistributionAreChecks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("README.md", "about checks\n", 0o644)
	write("fails.sh", "#!/bin/sh\necho no such thing; exit 3\n", 0o755)
	write("passes.sh", "#!/bin/sh\necho \"$NAMESPACE ${PATH%%:*} ${KUBECONFIG##*/}\"\n", 0o755)
	write("skips", "#!/bin/sh\necho needs a GPU; exit 77\n", 0o755)
	write("waits", "#!/bin/sh\nexec sleep 60\n", 0o755)
	checks, err := Own(dir)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, c := range checks {
		ctx, stop := context.WithTimeoutCause(t.Context(), 10*time.Second, errors.New("not done"))
		if c.Name == "waits" {
			stop()
		}
		e := &env{target: &target{State: &cluster.State{}, kubectl: "/bin/of/release/kubectl"}, ctx: ctx, namespace: "verify-x"}
		err := attempt(func() { c.run(e) })
		stop()
		var why skip
		switch {
		case errors.As(err, &why):
			said = append(said, c.String()+" is skipped: "+why.Error())
		case err != nil:
			said = append(said, c.String()+" fails: "+err.Error())
		default:
			said = append(said, c.String()+" passes: "+e.message)
		}
	}
	want := `own/fails fails: fails.sh: exit status 3: no such thing
own/passes passes: verify-x /bin/of/release kubeconfig
own/skips is skipped: needs a GPU
own/waits fails: waits: context canceled: `
	if got := strings.Join(said, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	write("forgotten.sh", "#!/bin/sh\n", 0o644)
	if _, err := Own(dir); err == nil || !strings.Contains(err.Error(), "forgotten.sh is no program that can run: make it executable") {
		t.Errorf("a file that cannot run: %v", err)
	}
	if checks, err := Own(filepath.Join(dir, "none")); checks != nil || err != nil {
		t.Errorf("no folder: %v, %v", checks, err)
	}
}
