package diff

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
)

// compareInfo compares the recorded build information.
func compareInfo(x, y *debug.BuildInfo, f *File) {
	if x.GoVersion != y.GoVersion {
		f.add("Go", "%s and %s", x.GoVersion, y.GoVersion)
	}
	var differ []string
	compare := func(what string, m, n *debug.Module) {
		if v, w := moduleText(m), moduleText(n); v != w {
			differ = append(differ, fmt.Sprintf("%s: %s and %s", what, v, w))
		}
	}
	modules := func(i *debug.BuildInfo) map[string]*debug.Module {
		l := map[string]*debug.Module{}
		for _, m := range i.Deps {
			l[m.Path] = m
		}
		return l
	}
	deps, others := modules(x), modules(y)
	var paths []string
	for p := range deps {
		paths = append(paths, p)
	}
	for p := range others {
		if deps[p] == nil {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	for _, p := range paths {
		compare(p, deps[p], others[p])
	}
	f.addAll("modules", "%d differ", differ)
	if x.Path != y.Path {
		f.add("modules", "main package: %s and %s", x.Path, y.Path)
	}
	if v, w := moduleText(&x.Main), moduleText(&y.Main); v != w {
		f.add("modules", "main module: %s and %s", v, w)
	}

	var settings []string
	value := func(i *debug.BuildInfo, key string) string {
		for _, s := range i.Settings {
			if s.Key == key {
				return s.Value
			}
		}
		return "unset"
	}
	var keys []string
	for _, s := range slices.Concat(x.Settings, y.Settings) {
		keys = append(keys, s.Key)
	}
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		if v, w := value(x, k), value(y, k); v != w {
			settings = append(settings, fmt.Sprintf("%s: %q and %q", k, v, w))
		}
	}
	f.addAll("build settings", "%d differ", settings)
}

// moduleText returns all that is recorded about a module.
func moduleText(m *debug.Module) string {
	if m == nil {
		return "missing"
	}
	text := strings.TrimSpace(m.Path + " " + m.Version + " " + m.Sum)
	if m.Replace != nil {
		text += ", replaced by " + moduleText(m.Replace)
	}
	return text
}
