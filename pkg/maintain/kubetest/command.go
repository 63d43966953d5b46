package kubetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/mechanism/suggest"
)

// Programs lists the components that upstream's kubectl command tests run.
func Programs() []string {
	return []string{"kube-apiserver", "kube-controller-manager", "kubectl", "kubectl-convert", "etcd"}
}

// needed lists the programs that the scripts run and that this machine must have.
var needed = []string{"bash", "curl", "jq", "openssl", "ss"}

// controllerManager is where kube-controller-manager listens in the scripts. No variable changes that.
const controllerManager = "127.0.0.1:10257"

// A MissingError names programs that this machine lacks.
type MissingError struct{ Programs []string }

func (e *MissingError) Error() string { return "not on PATH: " + strings.Join(e.Programs, ", ") }

// A PortError says that the command tests cannot listen on an address that they need.
type PortError struct {
	Address string
	Err     error
}

func (e *PortError) Error() string {
	return fmt.Sprintf("the command tests need %s: %v", e.Address, e.Err)
}
func (e *PortError) Unwrap() error { return e.Err }

// A ReplacedError refuses command tests in a tree whose go.mod replaces k8s.io/kubernetes by the user's own repository: the tests
// would write programs where upstream's make has a link, and make would fail from then on.
type ReplacedError struct{ Folder string }

func (e *ReplacedError) Error() string {
	return "the command tests run only in a copy of upstream's repository, and go.mod replaces k8s.io/kubernetes by " + e.Folder
}

// BadRequest marks it for package badrequest.
func (*ReplacedError) BadRequest() {}

// Require returns a *MissingError if this machine lacks programs that the command tests need, a *PortError if their port is in use, and
// another error if they cannot run on this system.
func Require() error {
	if runtime.GOOS != "linux" {
		return errors.New("upstream's command tests need Linux")
	}
	var missing []string
	for _, name := range needed {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return &MissingError{missing}
	}
	l, err := net.Listen("tcp", controllerManager)
	if err != nil {
		return &PortError{controllerManager, err}
	}
	return l.Close()
}

// suite matches the lines of upstream's script that run a suite, with its name.
var suite = regexp.MustCompile(`(?m)^\s*record_command run_(\w+)_tests\b`)

// Suites lists the suites of the kubectl command tests, in the order in which they run.
func (s *Sources) Suites() ([]string, error) {
	text, err := os.ReadFile(filepath.Join(s.Repository, "test", "cmd", "legacy-script.sh"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, match := range suite.FindAllSubmatch(text, -1) {
		if name := string(match[1]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// CommandTests runs suites of upstream's kubectl command tests, or all of them, in the copy of upstream's repository. Once the request is
// checked, it calls programs, which returns the files of the components that Programs lists, stamped with the version that tests expect.
func (s *Sources) CommandTests(ctx context.Context, suites []string, programs func() ([]string, error), o Options) error {
	if s.replaced {
		return &ReplacedError{s.Repository}
	}
	known, err := s.Suites()
	if err != nil {
		return err
	}
	for _, name := range suites {
		if !slices.Contains(known, name) {
			return suggest.Unknown("suite", name, known)
		}
	}
	files, err := programs()
	if err != nil {
		return err
	}
	bin, err := s.install(files)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "slipway-test-cmd-")
	if err != nil {
		return err
	}
	err = s.runScript(ctx, suites, bin, temp, o)
	return errors.Join(err, os.RemoveAll(temp))
}

// install puts programs where upstream's make does. The scripts run make. Upstream's Makefile is a symbolic link, which modules leave out,
// so install writes a Makefile that makes nothing.
func (s *Sources) install(programs []string) (bin string, err error) {
	bin = filepath.Join(s.Repository, "_output", "bin")
	if err := os.RemoveAll(bin); err != nil {
		return "", err
	}
	if err := os.MkdirAll(bin, 0o777); err != nil {
		return "", err
	}
	for _, program := range programs {
		if err := os.Symlink(program, filepath.Join(bin, filepath.Base(program))); err != nil {
			return "", err
		}
	}
	makefile := filepath.Join(s.Repository, "Makefile")
	if _, err := os.Stat(makefile); !errors.Is(err, fs.ErrNotExist) {
		return bin, err
	}
	return bin, os.WriteFile(makefile, []byte("# All programs are made before the tests.\n.PHONY: all test\nall test:\n"), 0o666)
}

func (s *Sources) runScript(ctx context.Context, suites []string, bin, temp string, o Options) error {
	cmd := exec.CommandContext(ctx, "bash", "hack/make-rules/test-cmd.sh")
	cmd.Dir = s.Repository
	o.setEnv(cmd)
	cmd.Env = append(cmd.Env, firstOnPath(o, filepath.Join(bin, "kubectl")), "WHAT="+strings.Join(suites, " "), "MAKEFLAGS=",
		"TMPDIR="+temp, "HOME="+temp, "SERVICE_ACCOUNT_KEY="+filepath.Join(temp, "service-account.key"), "KUBE_PANIC_WATCH_DECODE_ERROR=true")
	if o.getenv("KUBE_JUNIT_REPORT_DIR") == "" {
		cmd.Env = append(cmd.Env, "KUBE_JUNIT_REPORT_DIR="+filepath.Join(temp, "junit")) // the scripts' own default is in /tmp
	}
	for name, port := range map[string]int{"ETCD_PORT": etcdPort, "SECURE_API_PORT": 6443} {
		if o.getenv(name) != "" {
			continue
		}
		address, err := freeAddress(port)
		if err != nil {
			return err
		}
		cmd.Env = append(cmd.Env, name+"="+address[strings.LastIndexByte(address, ':')+1:])
	}
	cmd.Stdout, cmd.Stderr = io.Discard, o.Err
	if o.Show.Out != nil {
		cmd.Stdout = o.Show.Out
	}
	child.Group(cmd)
	cmd.Cancel = func() error { return child.SignalGroup(cmd, syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	err := child.Run(cmd, syscall.SIGKILL, nil)
	_ = child.SignalGroup(cmd, syscall.SIGKILL) // the script may leave servers behind
	left, _ := filepath.Glob(filepath.Join(s.Repository, "controller-manager.kubeconfig.*"))
	for _, name := range left {
		_ = os.Remove(name)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return fmt.Errorf("kubectl command tests failed: %w", err)
	}
	return err
}

// firstOnPath returns a PATH on which the folder of a program is first.
func firstOnPath(o Options, program string) string {
	return "PATH=" + filepath.Dir(program) + string(filepath.ListSeparator) + o.path()
}
