package bazel

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/tail"
)

// suite is the one of Debian's that has Bazel.
const suite = "forky"

// packages are what the root has: Bazel, the rule sets that WORKSPACE names, and what these and Bazel run.
var packages = []string{
	"bazel-bootstrap",
	"bazel-features", "bazel-platforms", "bazel-skylib",
	"bazel-rules-cc", "bazel-rules-java", "bazel-rules-license", "bazel-rules-proto", "bazel-rules-python", "bazel-rules-shell",
	"ca-certificates", "git", "gcc", "g++", "libc6-dev", "make", "mount", "patch", "procps", "python3", "unzip", "zip",
}

// options are mmdebstrap's. Java's packages make links among manual pages, and fail where the machine's dpkg leaves those out. Of
// what Debian sets for every Bazel, the startup options are kept: the others are deprecated, which Bazel would warn of each time.
var systemOptions = []string{
	`--aptopt=APT::Install-Recommends "false"`,
	`--essential-hook=mkdir -p "$1/usr/share/man/man1"`,
	`--customize-hook=sed -i '/^startup /!d' "$1/etc/bazel/bazelrc"`,
	"--customize-hook=" + debian.Cleanse,
}

// ensureSystem returns the root that has Bazel, after making it if it is not there.
func ensureSystem(ctx context.Context, o Options, version, why string) (dir string, err error) {
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("it needs Linux, and this is %s", runtime.GOOS)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "slipway", "bazel")
	dir = filepath.Join(cache, fmt.Sprintf("root-%x", recipe(version))[:len("root-")+16])
	if err := canEnter(ctx); err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	waiting := func(e action.Event) {
		if e.Kind == action.Waiting {
			o.Progress("waiting for another process, which makes a root with Bazel")
		}
	}
	return dir, action.Locked(ctx, cache, "lock", waiting, func() error {
		if _, err := os.Stat(dir); err == nil {
			return nil
		}
		o.Progress(fmt.Sprintf("%s: making a root of Debian packages with Bazel %s, once, in %s: 2 GB, some minutes", why, version, dir))
		return makeSystem(ctx, o, version, dir)
	})
}

func recipe(version string) []byte {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q", []any{"1", version, runtime.GOARCH, suite, packages, systemOptions})
	return h.Sum(nil)
}

// makeSystem unpacks beside dir what mmdebstrap packs, and renames it. Only one process does that at a time.
func makeSystem(ctx context.Context, o Options, version, dir string) error {
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "tmp-*"))
	if err != nil {
		return err
	}
	for _, old := range left { // by a process that was killed
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "tmp-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // gone already if all went well
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	s := debian.System{
		Mirror: o.Mirror, Suite: suite, Packages: packages, Options: systemOptions,
		Progress: func(step string) { o.Progress("root with Bazel: " + step) },
	}
	if err := s.Pack(ctx, func(tar io.Reader) error { return unpack(ctx, tar, tmp) }); err != nil {
		return err
	}
	if has := versionIn(tmp); upstream(has) != version {
		return fmt.Errorf("bazel-bootstrap of Debian's %s is %q, and .bazelversion pins %s: install that one, or pin the other", suite, has, version)
	}
	return os.Rename(tmp, dir)
}

// unpack needs no privileges: devices, which do, are bound when the root is entered.
func unpack(ctx context.Context, r io.Reader, dir string) error {
	output := &tail.Lines{}
	c := exec.CommandContext(ctx, "tar", "-x", "-p", "-C", dir, "--exclude=./dev/*")
	if os.Geteuid() == 0 {
		c.Args = append(c.Args, "--numeric-owner")
	} else {
		c.Args = append(c.Args, "--no-same-owner")
	}
	c.Stdin, c.Stderr = r, output
	if err := c.Run(); err != nil {
		return output.Explain(fmt.Errorf("unpack into %s: %w", dir, err))
	}
	return nil
}

// versionIn is that of the package of Bazel which dpkg's records of a root have.
func versionIn(root string) string {
	f, err := os.Open(filepath.Join(root, "var", "lib", "dpkg", "status"))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	found := false
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "Package: "); ok {
			found = name == "bazel-bootstrap"
		}
		if version, ok := strings.CutPrefix(lines.Text(), "Version: "); ok && found {
			return version
		}
	}
	return ""
}

// canEnter tries what entering a root needs.
func canEnter(ctx context.Context) error {
	if _, err := exec.LookPath("unshare"); err != nil {
		return errors.New("unshare is not on PATH: install the package util-linux")
	}
	output := &tail.Lines{}
	c := exec.CommandContext(ctx, "unshare", append(namespaces(), "true")...)
	c.Stderr = output
	if err := c.Run(); err != nil {
		hint := "let users make namespaces (sysctl kernel.unprivileged_userns_clone=1), or be root"
		if os.Geteuid() == 0 {
			hint = "in a container, that takes the capability SYS_ADMIN (docker run --privileged)"
		}
		return output.Explain(fmt.Errorf("no mount namespace can be made here: %w: %s", err, hint))
	}
	return nil
}
