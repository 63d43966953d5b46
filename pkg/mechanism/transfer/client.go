package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// oldest is the first version of rsync that compares times to the nanosecond, of January 2018.
const oldest = "3.1.3"

const install = "install the package rsync (apt-get install rsync, dnf install rsync, apk add rsync; on macOS brew install rsync)"

// Client returns the path of the host's rsync, after checking its version. The error says what to install.
func Client(ctx context.Context) (string, error) {
	program, err := exec.LookPath("rsync")
	if err != nil {
		return "", errors.New("rsync is not in PATH: " + install)
	}
	return program, check(ctx, program)
}

// check asks a program for its version.
func check(ctx context.Context, program string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errors.New("no answer within 10s"))
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Env, cmd.WaitDelay = environment(""), time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s --version: %w", program, err)
	}
	if err := checkVersion(string(out)); err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}

var versionLine = regexp.MustCompile(`(?m)^rsync\s+version\s+v?(\d+\.\d+)(\.\d+)?`)

// checkVersion checks the output of rsync --version. macOS has openrsync, whose output also says that it is compatible with
// 2.6.9.
func checkVersion(text string) error {
	first, _, _ := strings.Cut(text, "\n")
	if strings.Contains(text, "openrsync") {
		return errors.New("is openrsync, which will not do: " + install)
	}
	m := versionLine.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("has a version that cannot be read, %q: %s", first, install)
	}
	version := m[1] + cmp.Or(m[2], ".0")
	if semver.Compare("v"+version, "v"+oldest) < 0 {
		return fmt.Errorf("is version %s, and %s is needed: %s", version, oldest, install)
	}
	return nil
}

// environment returns the whole environment of rsync. Without HOME it finds no ~/.popt, which could give its flags other
// meanings. Even an empty password is set, because rsync would otherwise ask for one on the terminal.
func environment(password string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.DevNull, "LC_ALL=C", "RSYNC_PASSWORD=" + password}
}
