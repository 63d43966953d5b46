package maintaining

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/tree/worktree/gittest"
)

// TestAnyCommandOnLines runs a command that stands in for any that changes a tree: it gets its flags and arguments on each line, what it
// changes is committed under its command line, and where it changes nothing or fails, there is no commit.
func TestAnyCommandOnLines(t *testing.T) {
	t.Parallel()
	repo := gittest.New(t)
	for name, text := range map[string]string{
		"release/release.yaml": "module: cmd\nregistry: acme.example\n" +
			"go: {version: go1.26.8, sums: {linux-amd64: \"h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM=\"}}\n" +
			"sets: {server: [linux/amd64], node: [linux/amd64], client: [linux/amd64], test: [linux/amd64]}\n" +
			"binaries:\n- {name: kubelet, package: ./kubelet, sets: [node]}\n",
		"release/lines.yaml": "lines:\n" +
			"- {name: one, branch: one, minor: 1.37, end: 2027-10-28, owner: a}\n" +
			"- {name: two, branch: two, minor: 1.37, end: 2027-10-28, owner: a}\n" +
			"- {name: three, branch: three, minor: 1.37, end: 2027-10-28, owner: a}\n",
		"cmd/go.mod":          "module acme.example/cmd\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.37.2\n",
		"cmd/kubelet/main.go": "package main\n\nfunc main() {}\n",
	} {
		file := filepath.Join(repo.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	repo.Git("add", "--all")
	repo.Git("-c", "user.name=A", "-c", "user.email=a@acme.example", "commit", "-qm", "begin")
	for _, name := range []string{"one", "two", "three"} {
		repo.Git("branch", name)
	}
	fresh := func(s session.IO) *cobra.Command {
		root := &cobra.Command{Use: "slipway", SilenceErrors: true, SilenceUsage: true}
		dir := root.PersistentFlags().StringP("directory", "C", ".", "")
		root.PersistentFlags().Bool("json", false, "")
		raise := &cobra.Command{Use: "raise module", Short: "Raise a module", Args: cobra.ExactArgs(1)}
		fixes := raise.Flags().StringArray("fixes", nil, "")
		raise.RunE = func(_ *cobra.Command, args []string) error {
			text := args[0] + " " + strings.Join(*fixes, "+") + "\n"
			err := os.WriteFile(filepath.Join(*dir, "raised"), []byte(text), 0o666)
			switch filepath.Base(*dir) {
			case "two":
				err = errors.New("no such module")
			case "three":
				err = os.Remove(filepath.Join(*dir, "raised"))
			}
			return err
		}
		root.AddCommand(raise)
		return root
	}
	var out, problems bytes.Buffer
	s := &session.Session{Dir: repo.Dir, IO: session.IO{Out: &out, Err: &problems, Getenv: repo.Env(
		"GIT_AUTHOR_NAME", "A", "GIT_AUTHOR_EMAIL", "a@acme.example", "GIT_COMMITTER_NAME", "A", "GIT_COMMITTER_EMAIL", "a@acme.example")}}
	c := NewLines(s, fresh, []OnLines{{Command: "raise", Changes: true}})
	c.SetArgs([]string{"raise", "golang.org/x/net@v0.60.0", "--fixes", "CVE-1", "--fixes=CVE-2"})
	c.SilenceErrors, c.SilenceUsage = true, true
	if err := c.Execute(); err == nil || err.Error() != "1 of 3 lines failed or conflict" {
		t.Errorf("it ended with %v; %s", err, &problems)
	}
	want := `LINE   VERSION  RESULT         NOTE
one    v1.37.2  applies        1 commit on lines/one
two    v1.37.2  failed         no such module
three  v1.37.2  nothing to do
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
	if got := repo.Git("show", "lines/one:raised"); strings.TrimSpace(got) != "golang.org/x/net@v0.60.0 CVE-1+CVE-2" {
		t.Errorf("the command got %q", got)
	}
	title := "slipway raise golang.org/x/net@v0.60.0 --fixes=CVE-1"
	if got := repo.Git("log", "-1", "--format=%s", "lines/one"); !strings.HasPrefix(got, title) {
		t.Errorf("the commit is called %q", got)
	}
	if got := repo.Git("branch", "--list", "lines/t*"); strings.TrimSpace(got) != "" {
		t.Errorf("there are commits without a change: %s", got)
	}
	if _, err := os.Stat(filepath.Join(repo.Dir, "_output", "lines", "two", "raised")); err == nil {
		t.Error("what a failed command wrote is still there")
	}
}
