package debian

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// An origin says where Debian packages come from.
type origin struct {
	suite   string
	sources string   // in the format of a .sources file
	proxies []string // environment: apt's own, which mmdebstrap does not read
}

// mirrored is the default suite of a mirror that the user names.
const mirrored = "bookworm"

// keyring holds the keys of Debian's archive, on Debian and on systems that have its package.
const keyring = "usr/share/keyrings/debian-archive-keyring.gpg"

// ErrSources is in the error for a machine that does not say where it has packages from.
var ErrSources = errors.New("set SLIPWAY_DEBIAN_MIRROR to a Debian mirror")

// findArchive returns the mirror, if there is one, or the sources of the apt of the machine at root. A suite other than the
// machine's own comes from the same places.
func findArchive(mirror, suite, root string) (origin, error) {
	if mirror != "" {
		return fromMirror(mirror, cmp.Or(suite, mirrored), root)
	}
	codename, entries, err := aptSources(root)
	if err != nil {
		return origin{}, fmt.Errorf("%w: %w", err, ErrSources)
	}
	d := origin{suite: cmp.Or(suite, codename), proxies: aptProxies()}
	complete := false
	var text []string
	for _, e := range entries {
		own := slices.Contains(strings.Fields(e.get("Suites")), codename)
		complete = complete || own
		if d.suite != codename { // its updates and security fixes may have other names, or none
			if !own {
				continue
			}
			e.set("Suites", d.suite)
		}
		text = append(text, e.String())
	}
	if !complete {
		return origin{}, fmt.Errorf("apt has no source for Debian's %s: %w", codename, ErrSources)
	}
	d.sources = strings.Join(text, "\n")
	return d, nil
}

func fromMirror(mirror, suite, root string) (origin, error) {
	if err := checkMirror(mirror); err != nil {
		return origin{}, err
	}
	keys := filepath.Join(root, filepath.FromSlash(keyring))
	if _, err := os.Stat(keys); err != nil {
		return origin{}, fmt.Errorf("the keys of Debian's archive are not here: install the package debian-archive-keyring: %w", err)
	}
	e := source{{"Types", "deb"}, {"URIs", mirror}, {"Suites", suite}, {"Components", "main"}, {"Signed-By", keys}}
	return origin{suite: suite, sources: e.String(), proxies: aptProxies()}, nil
}

// aptSources returns which release of Debian the machine at root has, and from where its apt has that.
func aptSources(root string) (string, []source, error) {
	codename, err := codename(filepath.Join(root, "etc", "os-release"))
	if err != nil {
		return "", nil, err
	}
	entries, err := readSources(filepath.Join(root, "etc", "apt"))
	return codename, slices.DeleteFunc(entries, func(e source) bool { return !e.restrict(codename) }), err
}

// codename reads which release of Debian a machine has.
func codename(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", errors.New("this machine is not a Debian")
	}
	defer func() { _ = f.Close() }()
	values := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), "="); ok {
			values[name] = strings.Trim(value, `"'`)
		}
	}
	if values["ID"] != "debian" || values["VERSION_CODENAME"] == "" {
		return "", errors.New("this machine is not a Debian with a codename")
	}
	return values["VERSION_CODENAME"], nil
}

// aptProxies asks apt for its proxies, once. In the environment they stay out of what is made, and out of the list of processes.
var aptProxies = sync.OnceValue(func() []string {
	var env []string
	for _, scheme := range []string{"http", "https"} {
		name := scheme + "_proxy"
		if os.Getenv(name) != "" {
			continue // apt takes that, too
		}
		out, _ := exec.Command("apt-config", "dump", "--format", "%v%n", "Acquire::"+scheme+"::Proxy").Output() // none: directly
		if proxy := strings.TrimSpace(string(out)); proxy != "" && proxy != "DIRECT" {
			env = append(env, name+"="+proxy)
		}
	}
	return env
})
