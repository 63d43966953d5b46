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

// namespaces are the options of unshare. Mounts that the machine gets or loses later come and go in a namespace, too, which a
// server may keep for days.
func namespaces() []string {
	options := []string{"--mount", "--propagation=slave"}
	if os.Geteuid() != 0 {
		options = append(options, "--user", "--map-root-user")
	}
	return options
}

// enter prepares to run a command in a root, in a folder there, with folders of this machine bound by the same names.
func enter(ctx context.Context, root, dir string, binds, command []string) *exec.Cmd {
	args := append(namespaces(), "sh", "-c", enterScript, "enter.sh", root, dir)
	args = append(append(append(args, binds...), "--"), command...)
	return exec.CommandContext(ctx, "unshare", args...)
}

// binds are the folders that Bazel and what it runs need of this machine, without those inside of others.
func (b *Bazel) binds() []string {
	folders := []string{b.options.Root, b.options.Go.Root, b.options.Go.ModCache, os.TempDir()}
	if cache, err := os.UserCacheDir(); err == nil {
		folders = append(folders, cache) // Bazel's output, and the root itself
	}
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		folders = append(folders, home) // .netrc, .gitconfig, .bazelrc
	}
	for _, kv := range b.options.Go.Command(context.Background(), "", "", "").Env {
		if cache, ok := strings.CutPrefix(kv, "GOCACHE="); ok {
			folders = append(folders, cache)
		}
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

// command is one of Bazel in a root. A server that was started with other folders has not the same startup options, and Bazel
// starts another in its place.
func command(program string, binds, args []string) []string {
	sum := sha256.Sum256([]byte(strings.Join(binds, "\n")))
	return append([]string{program, fmt.Sprintf("--host_jvm_args=-Dslipway.binds=%x", sum[:8])}, args...)
}
