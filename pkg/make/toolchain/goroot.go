package toolchain

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/statcache"
)

// A goroot is an installed Go as the module golang.org/toolchain would hold it.
type goroot struct {
	dir      string
	module   string // what the module would be called
	platform string // "linux-arm64"
}

func newGoroot(dir, version, platform string) (*goroot, error) {
	dir, err := filepath.EvalSymlinks(dir) // WalkDir does not follow links
	return &goroot{dir, moduleOf(version, platform), platform}, err
}

// files finds the files that would be in the module, by their names there. Names are relative, with slashes.
func (g *goroot) files() (map[string]string, error) {
	files := map[string]string{}
	return files, fs.WalkDir(os.DirFS(g.dir), ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && leftOut(file):
			return fs.SkipDir
		case !d.IsDir() && distributed(file, g.platform):
			// A module cannot contain another module's go.mod. A fetched Go has both names. It reads go.mod, which comes later in
			// the walk and so replaces the other.
			name := file
			if folder, base := path.Split(file); base == "go.mod" {
				name = folder + "_go.mod"
			}
			files[name] = file
		}
		return nil
	})
}

// sum hashes the files as `go mod download` hashes those of a module.
func (g *goroot) sum() (string, error) {
	files, err := g.files()
	if err != nil {
		return "", err
	}
	prefix := g.module + "/"
	var names []string
	for name := range files {
		names = append(names, prefix+name)
	}
	return dirhash.Hash1(names, func(name string) (io.ReadCloser, error) {
		rel := files[strings.TrimPrefix(name, prefix)]
		file := filepath.Join(g.dir, filepath.FromSlash(rel))
		if rel != "go.env" {
			return os.Open(file)
		}
		data, err := os.ReadFile(file)
		return io.NopCloser(bytes.NewReader(asReleased(data))), err
	})
}

// state returns a digest of all files' identities. It changes when a file is written, even if its modification time is set back. Every
// command that compiles asks for it, of more than ten thousand files, so each is asked for by its name in a folder that is open: by its
// path, the system would look up each folder above it again.
func (g *goroot) state() (string, error) {
	var mu sync.Mutex
	var folders []string // digests
	var group errgroup.Group
	var walk func(rel string) error
	walk = func(rel string) error {
		dir, err := statcache.Open(filepath.Join(g.dir, filepath.FromSlash(rel)))
		if err != nil {
			return err
		}
		defer dir.Close()
		entries, err := dir.ReadDir(-1)
		if err != nil {
			return err
		}
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		found := strconv.AppendQuote(nil, rel)
		for _, e := range entries {
			name := path.Join(rel, e.Name())
			switch {
			case e.IsDir() && leftOut(name):
			case e.IsDir():
				below := func() error { return walk(name) }
				if !group.TryGo(below) {
					if err := below(); err != nil {
						return err
					}
				}
			case distributed(name, g.platform):
				st, err := dir.Stat(e.Name())
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				found = strconv.AppendQuote(append(found, '\n'), e.Name())
				for _, n := range []uint64{uint64(st.Size), uint64(st.Mtime), uint64(st.Ctime), st.Inode, uint64(st.Mode)} {
					found = strconv.AppendUint(append(found, ' '), n, 36)
				}
			}
		}
		sum := sha256.Sum256(found)
		mu.Lock()
		defer mu.Unlock()
		folders = append(folders, string(sum[:]))
		return nil
	}
	group.SetLimit(runtime.GOMAXPROCS(0))
	group.Go(func() error { return walk("") })
	if err := group.Wait(); err != nil {
		return "", err
	}
	slices.Sort(folders) // each has its name in its digest
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(folders, "")))), nil
}

// rememberedSum returns sum, but reads the files only once: the user's cache folder has the last state of each GOROOT, and
// its sum. Without such a folder, the sum is computed each time.
func (g *goroot) rememberedSum() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return g.sum()
	}
	now, err := g.state()
	if err != nil {
		return "", err
	}
	name := sha256.Sum256([]byte(g.module + "\n" + g.dir))
	file := filepath.Join(cache, "slipway", fmt.Sprintf("goroot-%x", name[:8]))
	data, _ := os.ReadFile(file) // missing the first time
	if state, sum, ok := strings.Cut(strings.TrimSpace(string(data)), " "); ok && state == now {
		return sum, nil
	}
	sum, err := g.sum()
	if err == nil && os.MkdirAll(filepath.Dir(file), 0o777) == nil {
		_ = atomicfile.WriteFile(file, []byte(now+" "+sum+"\n"), 0o600) // only saves time
	}
	return sum, err
}

// unreleased returns why the Go in a folder is not a version as released for a platform with the sum want, or "" if it is.
func unreleased(dir, version, platform, want string) string {
	g, err := newGoroot(dir, version, platform)
	var sum string
	if err == nil {
		sum, err = g.rememberedSum()
	}
	if err != nil {
		return fmt.Sprintf("the installed one cannot be checked: %v", err)
	}
	if sum != want {
		return fmt.Sprintf("the one in %s is not as it was released", dir)
	}
	return ""
}

// versionOf returns the version that the Go in a GOROOT says it is.
func versionOf(root string) string {
	data, _ := os.ReadFile(filepath.Join(root, "VERSION")) // a Go built from a checkout has none
	version, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(version)
}

// leftOut and distributed follow the rules by which cmd/distpack, the tool of Go's releases, makes a module of a GOROOT.
func leftOut(folder string) bool {
	return slices.Contains([]string{"api", "doc", "misc", "test", ".git", ".github"}, folder)
}

func distributed(file, platform string) bool {
	goos, goarch, _ := strings.Cut(platform, "-")
	exe := ""
	if goos == "windows" {
		exe = ".exe"
	}
	folder, name := path.Split(file)
	switch {
	case name == ".DS_Store", strings.HasSuffix(name, ".exe~"):
		return false
	case slices.Contains([]string{".gitattributes", ".gitignore", "VERSION.cache", "src/cmd/dist/dist" + exe}, file):
		return false
	case strings.HasPrefix(file, "bin/"):
		return file == "bin/go"+exe || file == "bin/gofmt"+exe
	case strings.HasPrefix(file, "pkg/include/"):
		return true
	case strings.HasPrefix(file, "pkg/"):
		tools := []string{"asm", "cgo", "compile", "cover", "fix", "link", "preprofile", "vet"}
		return folder == "pkg/tool/"+goos+"_"+goarch+"/" && slices.Contains(tools, strings.TrimSuffix(name, exe))
	}
	return true
}

// origins are the settings of a go.env that say where modules and toolchains come from. They have no effect on a compile.
var origins = []string{"GOPROXY", "GOSUMDB", "GOTOOLCHAIN"}

var setting = regexp.MustCompile(`(?m)^([A-Za-z0-9_]+)=(.*)$`)

// asReleased sets GOTOOLCHAIN in a go.env to the released value, since container images set it to local.
func asReleased(env []byte) []byte {
	return setting.ReplaceAllFunc(env, func(line []byte) []byte {
		if name, _, _ := bytes.Cut(line, []byte("=")); string(name) == "GOTOOLCHAIN" {
			return []byte("GOTOOLCHAIN=auto")
		}
		return line
	})
}

// checkDefaults refuses a go.env with settings that could decide bytes.
func checkDefaults(root string) error {
	file := filepath.Join(root, "go.env")
	env, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, line := range setting.FindAllSubmatch(env, -1) {
		if !slices.Contains(origins, string(line[1])) && len(line[2]) > 0 {
			return fmt.Errorf("%s sets %s: remove the setting", file, line[1])
		}
	}
	return nil
}
