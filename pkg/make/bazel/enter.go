package bazel

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed enter.sh
var enterScript string

// namespaces returns options of unshare. A server may keep its namespace for days, so later mounts of the machine must appear
// and disappear in it, too.
func namespaces() []string {
	options := []string{"--mount", "--propagation=slave"}
	if os.Geteuid() != 0 {
		options = append(options, "--user", "--map-root-user")
	}
	return options
}

// enter prepares a command in a folder of a root, where folders of this machine are bound to the same paths.
func enter(ctx context.Context, root, dir string, binds, command []string) *exec.Cmd {
	args := append(namespaces(), "sh", "-c", enterScript, "enter.sh", root, dir)
	args = append(append(append(args, binds...), "--"), command...)
	return exec.CommandContext(ctx, "unshare", args...)
}

// binds returns the folders of this machine that Bazel and its actions need, without those inside other ones.
func (b *Bazel) binds() []string {
	folders := []string{b.options.Root, b.options.Go.Root, b.options.Go.ModCache, os.TempDir()}
	if cache, err := os.UserCacheDir(); err == nil {
		folders = append(folders, cache) // Bazel's output, and the root itself
	}
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		folders = append(folders, home) // .netrc, .gitconfig, .bazelrc
	}
	if cache := b.options.Go.Setting("GOCACHE"); cache != "" {
		folders = append(folders, cache)
	}
	slices.Sort(folders)
	var binds []string
	for _, folder := range folders {
		folder = filepath.Clean(folder)
		inside := slices.ContainsFunc(binds, func(other string) bool { return folder == other || strings.HasPrefix(folder, other+"/") })
		if info, err := os.Stat(folder); err == nil && info.IsDir() && !inside {
			binds = append(binds, folder)
		}
	}
	return binds
}

// command returns the command line of Bazel in a root. Its startup options name the folders, so that Bazel replaces a server
// that was started with other ones.
func command(program string, binds, args []string) []string {
	sum := sha256.Sum256([]byte(strings.Join(binds, "\n")))
	return append([]string{program, fmt.Sprintf("--host_jvm_args=-Dslipway.binds=%x", sum[:8])}, args...)
}
