package kubecross

import (
	"fmt"
	"regexp"
	"strings"
)

// packageLine is a package's name, perhaps with an architecture in the notation of Debian's own control files: "[amd64]" where
// the engine's machine is one, "[!amd64]" where it is not. Go's and Debian's names are the same for the two that there are.
var packageLine = regexp.MustCompile(`^([a-z0-9][a-z0-9+.-]+)(?:\s+\[(!?)(amd64|arm64)\])?$`)

// packages reads packages.txt for an engine's architecture.
func packages(text, arch string) ([]string, error) {
	var names []string
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		m := packageLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("packages.txt:%d: %q is neither a package nor one with [amd64], [!amd64], [arm64] or [!arm64] behind it", n, line)
		}
		name, not, only := m[1], m[2] == "!", m[3]
		if only == "" || (only == arch) != not {
			names = append(names, name)
		}
	}
	return names, nil
}
