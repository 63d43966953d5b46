package toolchain

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// fetch downloads the pinned Go for a platform with the installed one, in a module of its own, and returns its GOROOT.
func (i *installed) fetch(ctx context.Context, pin Pin, platform string) (string, error) {
	module, want := module(pin.Version, platform), pin.Sums[platform]
	// Without its sum in go.sum, the go command asks the checksum database for this module, even if that is switched off.
	if err := writeSums(i.dir, module, want); err != nil {
		return "", err
	}
	var stderr bytes.Buffer
	c := exec.CommandContext(ctx, i.name, "mod", "download", "-json", module)
	c.Dir = i.dir
	c.Env = append(slices.Clip(i.env), "GOSUMDB=off") // the sum that counts is the one that is reviewed with the sources
	c.Stderr = &stderr
	out, runErr := c.Output()
	var info struct{ Dir, Sum, Error string }
	if bytes.Contains(stderr.Bytes(), []byte("checksum mismatch")) {
		return "", fmt.Errorf("%s: its sum is not %s, which release.yaml has: it is not used", module, want)
	}
	if err := json.Unmarshal(out, &info); err != nil {
		if runErr != nil {
			err = runErr
		}
		return "", fmt.Errorf("go mod download %s: %w: %s", module, err, bytes.TrimSpace(stderr.Bytes()))
	}
	if info.Error != "" {
		return "", fmt.Errorf("go mod download %s: %s: make it reachable, or install %s", module, info.Error, pin.Version)
	}
	if info.Sum != want {
		return "", fmt.Errorf("%s: its sum is %s, release.yaml has %s: it is not used", module, info.Sum, want)
	}
	return info.Dir, makeExecutable(info.Dir)
}

// goModSum is the sum of a toolchain's go.mod, which only names the module: it is the same for all.
const goModSum = "h1:8wlg68NqwW7eMnI1aABk/C2pDYXj8mrMY4TyRfiLeS0="

// writeSums writes the go.sum by which the go command accepts the module.
func writeSums(dir, module, sum string) error {
	path, version, _ := strings.Cut(module, "@")
	sums := fmt.Sprintf("%[1]s %[2]s %[3]s\n%[1]s %[2]s/go.mod %[4]s\n", path, version, sum, goModSum)
	return os.WriteFile(filepath.Join(dir, "go.sum"), []byte(sums), 0o666)
}

// makeExecutable gives a GOROOT's programs the modes that a module's files do not have, as the go command does when it
// changes to another Go by itself. The tools come first: whoever can run the go command already finds them runnable.
func makeExecutable(goroot string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	for _, folder := range []string{filepath.Join("pkg", "tool"), "bin"} {
		err := filepath.WalkDir(filepath.Join(goroot, folder), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err != nil || info.Mode()&0o111 == 0o111 {
				return err
			}
			return os.Chmod(file, info.Mode().Perm()|0o111)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
