package kubecross

import (
	"bufio"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A debian says where Debian packages come from.
type debian struct {
	suite   string
	sources string   // in the format of a .sources file
	proxies []string // environment: apt's own, which mmdebstrap does not read
}

// mirrored is the suite that is taken from a mirror that the user names: that of the published base.
const mirrored = "bookworm"

// keyring holds the keys of Debian's archive, on Debian and on systems that have its package.
const keyring = "usr/share/keyrings/debian-archive-keyring.gpg"

// errSources is for a machine that cannot say.
var errSources = errors.New("set SLIPWAY_DEBIAN_MIRROR to a Debian mirror, or KUBE_CROSS_BASE to an image that the engine has or can pull")

// findDebian takes the mirror, if there is one, or what the apt of the machine at root is configured to use.
func findDebian(mirror, root string) (debian, error) {
	if mirror != "" {
		return fromMirror(mirror, root)
	}
	codename, err := codename(filepath.Join(root, "etc", "os-release"))
	if err != nil {
		return debian{}, fmt.Errorf("%w: %w", err, errSources)
	}
	entries, err := readSources(filepath.Join(root, "etc", "apt"))
	if err != nil {
		return debian{}, fmt.Errorf("%w: %w", err, errSources)
	}
	d := debian{suite: codename, proxies: aptProxies()}
	complete := false
	var text []string
	for _, e := range entries {
		if e.restrict(codename) {
			complete = complete || slices.Contains(strings.Fields(e.get("Suites")), codename)
			text = append(text, e.String())
		}
	}
	if !complete {
		return debian{}, fmt.Errorf("apt has no source for Debian's %s: %w", codename, errSources)
	}
	d.sources = strings.Join(text, "\n")
	return d, nil
}

func fromMirror(mirror, root string) (debian, error) {
	u, err := url.Parse(mirror)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.ContainsAny(mirror, " \t\n") {
		return debian{}, fmt.Errorf("SLIPWAY_DEBIAN_MIRROR: %q is not an address such as http://mirror.example.com/debian", redact(mirror))
	}
	keys := filepath.Join(root, filepath.FromSlash(keyring))
	if _, err := os.Stat(keys); err != nil {
		return debian{}, fmt.Errorf("the keys of Debian's archive are not here: install the package debian-archive-keyring: %w", err)
	}
	e := source{{"Types", "deb"}, {"URIs", mirror}, {"Suites", mirrored}, {"Components", "main"}, {"Signed-By", keys}}
	return debian{suite: mirrored, sources: e.String(), proxies: aptProxies()}, nil
}

// codename reads which Debian a machine is.
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

// aptProxies asks apt for the proxies it is configured with. By the environment they stay out of the image, and of the list of
// processes.
func aptProxies() []string {
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
}
