package diff

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
)

// compareInfo compares the recorded build information.
func compareInfo(x, y *debug.BuildInfo, f *File) {
	if x.GoVersion != y.GoVersion {
		f.add("Go", "%s and %s", x.GoVersion, y.GoVersion)
	}
	modules := func(i *debug.BuildInfo) map[string]string {
		texts := map[string]string{}
		for _, m := range i.Deps {
			texts[m.Path] = moduleText(m)
		}
		return texts
	}
	var differ []string
	deps, others := modules(x), modules(y)
	for _, p := range names(deps, others) {
		if v, w := cmp.Or(deps[p], "missing"), cmp.Or(others[p], "missing"); v != w {
			differ = append(differ, fmt.Sprintf("%s: %s and %s", p, v, w))
		}
	}
	f.addAll("modules", "%d differ", differ)
	if x.Path != y.Path {
		f.add("modules", "main package: %s and %s", x.Path, y.Path)
	}
	if v, w := moduleText(&x.Main), moduleText(&y.Main); v != w {
		f.add("modules", "main module: %s and %s", v, w)
	}

	settings := func(i *debug.BuildInfo) map[string]string {
		values := map[string]string{}
		for _, s := range i.Settings {
			values[s.Key] = strconv.Quote(s.Value)
		}
		return values
	}
	const unset = `"unset"`
	differ = nil
	v, w := settings(x), settings(y)
	for _, k := range names(v, w) {
		if v[k] != w[k] {
			differ = append(differ, fmt.Sprintf("%s: %s and %s", k, cmp.Or(v[k], unset), cmp.Or(w[k], unset)))
		}
	}
	f.addAll("build settings", "%d differ", differ)
}

// moduleText returns all that is recorded about a module.
func moduleText(m *debug.Module) string {
	text := strings.TrimSpace(m.Path + " " + m.Version + " " + m.Sum)
	if m.Replace != nil {
		text += ", replaced by " + moduleText(m.Replace)
	}
	return text
}
