package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// oldest is the first version of rsync that compares times to the nanosecond, of January 2018.
var oldest = [3]int{3, 1, 3}

const install = "install the package rsync (apt-get install rsync, dnf install rsync, apk add rsync; on macOS brew install rsync)"

// Client returns the path of the host's rsync, after checking its version. The error says what to install.
func Client(ctx context.Context) (string, error) {
	return client(ctx, os.Getenv("PATH"))
}

func client(ctx context.Context, path string) (string, error) {
	program, err := find(path)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errors.New("no answer within 10s"))
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Env, cmd.WaitDelay = environment(""), time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", program, err)
	}
	if err := checkVersion(string(out)); err != nil {
		return "", fmt.Errorf("%s: %w", program, err)
	}
	return program, nil
}

// find looks for rsync in the folders of path.
func find(path string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // relative to the working directory
		}
		if program, err := exec.LookPath(filepath.Join(dir, "rsync")); err == nil {
			return program, nil
		}
	}
	return "", errors.New("rsync is not in PATH: " + install)
}

var versionLine = regexp.MustCompile(`(?m)^rsync\s+version\s+v?(\d+)\.(\d+)(?:\.(\d+))?`)

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
	var version [3]int
	for i := range version {
		version[i], _ = strconv.Atoi(m[i+1]) // digits, or "" for 0
	}
	for i := range version {
		if version[i] != oldest[i] {
			if version[i] < oldest[i] {
				return fmt.Errorf("is version %d.%d.%d, and %d.%d.%d is needed: %s",
					version[0], version[1], version[2], oldest[0], oldest[1], oldest[2], install)
			}
			break
		}
	}
	return nil
}

// environment returns the whole environment of rsync. Without HOME it finds no ~/.popt, which could give its flags other
// meanings. Even an empty password is set, because rsync would otherwise ask for one on the terminal.
func environment(password string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.DevNull, "LC_ALL=C", "RSYNC_PASSWORD=" + password}
}
