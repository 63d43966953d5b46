package toolchain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/tree/module"
)

// Download returns the GOROOT of the pinned Go for any platform ("linux-arm64"): that of the installed Go, or one that the
// installed Go fetches, as it reports to progress unless that is nil. Either has the sum of the pin. [Files] lists the
// files in the folder that belong to the release.
func Download(ctx context.Context, pin Pin, platform string, progress func(string)) (dir string, err error) {
	want := pin.Sums[platform]
	if want == "" {
		return "", fmt.Errorf("release.yaml has no sum of %s for %s: add it under go.sums", pin.Version, platform)
	}
	i, err := findInstalled(ctx, pin)
	if err != nil {
		return "", err
	}
	defer i.close()
	if platform == host && versionOf(i.root) == pin.Version && unreleased(i.root, pin.Version, platform, want) == "" {
		return i.root, nil
	}
	if progress != nil {
		progress(fmt.Sprintf("fetching %s for %s", pin.Version, platform))
	}
	return i.fetch(ctx, pin, platform)
}

// Files returns the files in a GOROOT that belong to the Go that was released for a platform ("linux-arm64"). Keys are the
// names in an installed Go, relative and with slashes. A folder with these files has the release's sum. The caller makes
// the files below bin and pkg/tool executable.
func Files(dir, platform string) (map[string]string, error) {
	g, err := newGoroot(dir, "", platform)
	if err != nil {
		return nil, fmt.Errorf("read the Go in %s: %w", dir, err)
	}
	packed, err := g.files()
	if err != nil {
		return nil, fmt.Errorf("read the Go in %s: %w", dir, err)
	}
	files := make(map[string]string, len(packed))
	for name, rel := range packed {
		if folder, base := path.Split(name); base == "_go.mod" {
			name = folder + "go.mod"
		}
		files[name] = filepath.Join(g.dir, filepath.FromSlash(rel))
	}
	return files, nil
}

// fetch downloads the pinned Go for a platform with the installed Go, and returns its GOROOT.
func (i *installed) fetch(ctx context.Context, pin Pin, platform string) (string, error) {
	name, want := moduleOf(pin.Version, platform), pin.Sums[platform]
	// Without this sum in go.sum, the go command asks the checksum database, even if that is switched off. Go 1.26.10 asks in any case.
	if err := writeSums(i.dir, name, want); err != nil {
		return "", err
	}
	c := exec.CommandContext(ctx, i.name, "mod", "download", "-json", name)
	c.Dir, c.Env = i.dir, i.env
	answers, err := Answers(c)
	switch {
	case err != nil && strings.Contains(err.Error(), "checksum mismatch"):
		return "", fmt.Errorf("%s: its sum is not the one in release.yaml, %s", name, want)
	case err != nil:
		return "", err
	case len(answers) != 1:
		return "", fmt.Errorf("go mod download %s: %d answers", name, len(answers))
	}
	info := answers[0]
	if info.Error != "" {
		err := fmt.Errorf("go mod download %s: %s: make it reachable, or install %s", name, info.Error, pin.Version)
		return "", noDatabase(err)
	}
	if info.Sum != want {
		return "", fmt.Errorf("%s: its sum is %s, and release.yaml has %s", name, info.Sum, want)
	}
	// The go command checks downloads, but not what the module cache already has.
	if unreleased(info.Dir, pin.Version, platform, want) != "" {
		return "", fmt.Errorf("%s has changed since it was downloaded: remove it (go clean -modcache)", info.Dir)
	}
	return info.Dir, makeExecutable(info.Dir)
}

// goModSum is the sum of a toolchain's go.mod. All versions have the same: it only names the module.
const goModSum = "h1:8wlg68NqwW7eMnI1aABk/C2pDYXj8mrMY4TyRfiLeS0="

// writeSums writes a go.sum with which the go command accepts the module.
func writeSums(dir, name, sum string) error {
	path, version, _ := strings.Cut(name, "@")
	sums := fmt.Sprintf("%[1]s %[2]s %[3]s\n%[1]s %[2]s/go.mod %[4]s\n", path, version, sum, goModSum)
	return os.WriteFile(filepath.Join(dir, "go.sum"), []byte(sums), 0o666)
}

// Released returns the module as which the pinned Go was released for a host ("linux-arm64"), or false if the pin has no sum
// for it.
func (p Pin) Released(host string) (module.Pinned, bool) {
	path, version, _ := strings.Cut(moduleOf(p.Version, host), "@")
	return module.Pinned{Version: module.Version{Path: path, Version: version}, Sum: p.Sums[host], GoModSum: goModSum}, p.Sums[host] != ""
}

// Fetch puts modules into the module cache: their code, or, of those without a Sum, their go.mod files. A module with other
// sums is an error.
func (g *Go) Fetch(ctx context.Context, modules []module.Pinned) error {
	dir, err := outside()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var sums bytes.Buffer
	var code, toolchains, goMods []string
	for _, m := range modules {
		switch {
		case m.Sum == "":
			goMods = append(goMods, m.String())
		case m.Path == toolchainModule:
			toolchains = append(toolchains, m.String())
		default:
			code = append(code, m.String())
		}
		if m.Sum != "" {
			fmt.Fprintf(&sums, "%s %s %s\n", m.Path, m.Version.Version, m.Sum)
		}
		if m.GoModSum != "" {
			fmt.Fprintf(&sums, "%s %s/go.mod %s\n", m.Path, m.Version.Version, m.GoModSum)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums.Bytes(), 0o666); err != nil {
		return err
	}
	// The given sums count, but about toolchains, Go 1.26.10 asks the checksum database all the same.
	for some := range slices.Chunk(code, 500) { // a command line has a limit
		if err := g.fetch(ctx, dir, slices.Concat([]string{"mod", "download", "-json"}, some), "GOSUMDB=off"); err != nil {
			return err
		}
	}
	if len(toolchains) > 0 {
		if err := g.fetch(ctx, dir, slices.Concat([]string{"mod", "download", "-json"}, toolchains)); err != nil {
			return noDatabase(err)
		}
	}
	var lists errgroup.Group
	lists.SetLimit(4) // a go command asks for one go.mod file after the other
	for some := range slices.Chunk(goMods, 100) {
		lists.Go(func() error {
			return g.fetch(ctx, dir, slices.Concat([]string{"list", "-m", "-e", "-json=Path,Version,Error"}, some), "GOSUMDB=off")
		})
	}
	return lists.Wait()
}

// fetch runs a go command that prints a JSON object for each module, and returns the errors in them.
func (g *Go) fetch(ctx context.Context, dir string, args []string, env ...string) error {
	c := g.Command(ctx, dir, "", "", args...)
	c.Env = append(append(c.Env, "GOFLAGS=-mod=mod"), env...)
	answers, err := Answers(c)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	failed := []error{err}
	for _, a := range answers {
		if a.Error != "" {
			failed = append(failed, errors.New(string(a.Error)))
		}
	}
	return errors.Join(failed...)
}

// noDatabase adds to the error of a download of toolchains what to do if the user has switched the checksum database off.
func noDatabase(err error) error {
	if err != nil && strings.Contains(err.Error(), "checksum database disabled") {
		return fmt.Errorf("%w: some versions of the go command ask it about toolchains in any case: unset GOSUMDB, or name a folder that "+
			"has the toolchain in SLIPWAY_INPUTS", err)
	}
	return err
}

// An Answer is what a go command prints with -json about a module.
type Answer struct {
	Path, Version, Dir, Sum string
	Error                   Message
}

// A Message is text, or an object with a text.
type Message string

// UnmarshalJSON removes user names and passwords from addresses in the text.
func (m *Message) UnmarshalJSON(data []byte) error {
	var text string
	var object struct{ Err string }
	if json.Unmarshal(data, &text) != nil && json.Unmarshal(data, &object) == nil {
		text = object.Err
	}
	*m = Message(tail.Redact(strings.TrimSpace(text)))
	return nil
}

// Answers runs a go command that prints a JSON object for each module. It fails if the command fails and no object says why.
func Answers(c *exec.Cmd) ([]Answer, error) {
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	failed := c.Run()
	words := slices.DeleteFunc(slices.Clone(c.Args[1:]), func(word string) bool { return strings.HasPrefix(word, "-") })
	command := "go " + strings.Join(words[:min(3, len(words))], " ") // the first module says enough
	var answers []Answer
	for d := json.NewDecoder(&stdout); d.More(); {
		var a Answer
		if err := d.Decode(&a); err != nil {
			return nil, fmt.Errorf("%s: %w", command, errors.Join(err, failed))
		}
		answers = append(answers, a)
	}
	if failed != nil && !slices.ContainsFunc(answers, func(a Answer) bool { return a.Error != "" }) {
		return nil, fmt.Errorf("%s: %w: %s", command, failed, tail.Redact(strings.TrimSpace(stderr.String())))
	}
	return answers, nil
}

// makeExecutable makes a GOROOT's programs executable, since a module's files are not. The go command does the same when it
// switches to another Go. The tools come first, so that another process that can run the go command can run them, too.
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
