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

// suite is the release of Debian that has Bazel.
const suite = "forky"

// packages lists the packages of the root: Bazel, the rule sets that WORKSPACE names, and the programs that they run.
var packages = []string{
	"bazel-bootstrap",
	"bazel-features", "bazel-platforms", "bazel-skylib",
	"bazel-rules-cc", "bazel-rules-java", "bazel-rules-license", "bazel-rules-proto", "bazel-rules-python", "bazel-rules-shell",
	"ca-certificates", "git", "gcc", "g++", "libc6-dev", "make", "mount", "patch", "procps", "python3", "unzip", "zip",
}

// systemOptions are options of mmdebstrap. Java's packages make links among manual pages, and fail where the machine's dpkg
// leaves those out. Of Debian's settings for every Bazel, only the startup options are kept: the others are deprecated, and
// Bazel would print a warning each time.
var systemOptions = []string{
	`--aptopt=APT::Install-Recommends "false"`,
	`--essential-hook=mkdir -p "$1/usr/share/man/man1"`,
	`--customize-hook=sed -i '/^startup /!d' "$1/etc/bazel/bazelrc"`,
	"--customize-hook=" + debian.Cleanse,
}

// ensureSystem returns the root with Bazel, and makes it if it is missing.
func ensureSystem(ctx context.Context, o Options, version, why string) (dir string, err error) {
	if dir, err = systemDir(ctx, version); err != nil {
		return "", err
	}
	cache := filepath.Dir(dir)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	waiting := func(e action.Event) {
		if e.Kind == action.Waiting {
			o.Progress("waiting for another process that makes a root with Bazel")
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

// systemDir returns where the root with Bazel is, or would be. It fails on a machine that cannot enter one.
func systemDir(ctx context.Context, version string) (string, error) {
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("a root needs Linux, and this is %s", runtime.GOOS)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("root-%x", recipe(version))[:len("root-")+16]
	return filepath.Join(cache, "slipway", "bazel", name), canEnter(ctx)
}

// systemReady looks whether there is a root with Bazel, or one could be created.
func systemReady(ctx context.Context, o Options, version string) error {
	dir, err := systemDir(ctx, version)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	return debian.System{Mirror: o.Mirror, Suite: suite}.Ready()
}

func recipe(version string) []byte {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q", []any{"1", version, runtime.GOARCH, suite, packages, systemOptions})
	return h.Sum(nil)
}

// makeSystem unpacks mmdebstrap's archive beside dir, and renames the result. Only one process does so at a time.
func makeSystem(ctx context.Context, o Options, version, dir string) error {
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "tmp-*"))
	if err != nil {
		return err
	}
	for _, old := range left { // by processes that were killed
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "tmp-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // renamed on success
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
		return fmt.Errorf("bazel-bootstrap of Debian's %s is %q, and .bazelversion pins %s", suite, has, version)
	}
	return os.Rename(tmp, dir)
}

// unpack unpacks a tar stream. It leaves out devices, which need privileges; they are bound when the root is entered.
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

// versionIn returns the version of Bazel's package in a root, or "".
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

// canEnter reports why a root cannot be entered on this machine.
func canEnter(ctx context.Context) error {
	if _, err := exec.LookPath("unshare"); err != nil {
		return errors.New("unshare is not on PATH: install the package util-linux")
	}
	output := &tail.Lines{}
	c := exec.CommandContext(ctx, "unshare", append(namespaces(), "true")...)
	c.Stderr = output
	if err := c.Run(); err != nil {
		hint := "let users make namespaces (sysctl kernel.unprivileged_userns_clone=1), or run as root"
		if os.Geteuid() == 0 {
			hint = "a container needs the capability SYS_ADMIN for it (docker run --privileged)"
		}
		return output.Explain(fmt.Errorf("cannot make a mount namespace: %w: %s", err, hint))
	}
	return nil
}
