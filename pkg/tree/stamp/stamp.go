package stamp

import (
	"embed"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/goflag"
	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// The code is in keys: it names files that are no sources.
var _ = recipe.Of("tree/stamp", sources)

// A Stamp names the version of a tree, and of everything built from it.
type Stamp struct {
	Version   string    // v1.36.3+slipway.20261120235300.0123456789ab
	Commit    string    // in hex, in full unless it was set shorter
	TreeState string    // "clean", "dirty", or "archive" for sources that were exported from git by other means
	Major     string    // 1
	Minor     string    // 36, or 36+ if Version is a pre-release
	Date      time.Time // UTC, whole seconds: the time of every file in a release
}

// ImageTag returns the version as a container image's tag, which cannot contain a '+'.
func (s Stamp) ImageTag() string { return imageTag(s.Version) }

func imageTag(version string) string { return strings.ReplaceAll(version, "+", "_") }

// stamped lists the packages of the components that hold a version.
var stamped = []string{"k8s.io/client-go/pkg/version", "k8s.io/component-base/version"}

// LDFlags returns the linker flags that set the version in a component, as go build -ldflags takes them. They are sorted, so
// equal stamps have equal flags.
func (s Stamp) LDFlags() string {
	var flags []string
	for _, pkg := range stamped {
		for name, value := range s.values() {
			word, err := goflag.Quote(pkg + "." + name + "=" + value)
			if err != nil {
				panic(err) // Read accepts no value with quotes
			}
			flags = append(flags, "-X "+word)
		}
	}
	slices.Sort(flags)
	return strings.Join(flags, " ")
}

// values returns the values of the variables by their names, which are the same in all stamped packages.
func (s Stamp) values() map[string]string {
	return map[string]string{
		"buildDate":    s.Date.UTC().Format(time.RFC3339),
		"gitCommit":    s.Commit,
		"gitMajor":     s.Major,
		"gitMinor":     s.Minor,
		"gitTreeState": s.TreeState,
		"gitVersion":   s.Version,
	}
}
