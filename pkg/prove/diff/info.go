package diff

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// modInfo returns the string of build information that the runtime keeps, with the marks around it.
func (x *exe) modInfo() string {
	const header = 32 // bytes of .go.buildinfo before its strings
	for _, s := range x.sections {
		if s.name != ".go.buildinfo" || len(s.data) < header {
			continue
		}
		d := s.data[header:]
		for i := range 2 { // Go's version, then the build information
			n, k := binary.Uvarint(d)
			if k <= 0 || n > uint64(len(d)-k) {
				return ""
			}
			if i == 1 {
				return string(d[k:][:n])
			}
			d = d[uint64(k)+n:]
		}
	}
	return ""
}

// compareInfo compares the recorded build information.
func compareInfo(a, b *exe, f *File) {
	x, y := a.info, b.info
	if x.GoVersion != y.GoVersion {
		f.add(Different, "Go", "%s and %s", x.GoVersion, y.GoVersion)
	}
	var differ, sums []string
	compare := func(what string, m, n *debug.Module) {
		v, sumA := effective(m)
		w, sumB := effective(n)
		switch {
		case v != w:
			differ = append(differ, fmt.Sprintf("%s: %s and %s", what, v, w))
		case sumA != sumB && sumA != "" && sumB != "":
			differ = append(differ, fmt.Sprintf("%s: sums %s and %s", v, sumA, sumB))
		case sumA != sumB:
			sums = append(sums, v)
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
	if len(differ) == 0 && (len(x.Deps) == 0) != (len(y.Deps) == 0) {
		f.add(Different, "modules", "only one side has them recorded")
	}
	f.addAll(Different, "modules", "%d differ", differ)
	f.addAll(Equivalent, "module sums", "%d are recorded on one side only", sums)
	compareMain(x, y, f)

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
	f.addAll(Equivalent, "build settings", "%d differ", settings)
}

// compareMain compares the main package and its module. Not every build system records them or the module's version, but what
// both sides record must be the same.
func compareMain(x, y *debug.BuildInfo, f *File) {
	m, n := &x.Main, &y.Main
	switch {
	case x.Path == y.Path && m.Path == n.Path && m.Version == n.Version && m.Sum == n.Sum:
	case x.Path != "" && y.Path != "" && x.Path != y.Path:
		f.add(Different, "modules", "main package: %s and %s", x.Path, y.Path)
	case m.Path != "" && n.Path != "" && m.Path != n.Path:
		f.add(Different, "modules", "main module: %s and %s", m.Path, n.Path)
	case released(m.Version) && released(n.Version) && m.Version != n.Version:
		f.add(Different, "modules", "main module: %s and %s", m.Version, n.Version)
	default:
		f.add(Equivalent, "build settings", "main module: %s and %s", cmp.Or(m.Path+" "+m.Version, "unset"), cmp.Or(n.Path+" "+n.Version, "unset"))
	}
}

// released reports whether a main module's version is a real one, rather than derived from the state of a work tree.
func released(version string) bool {
	return version != "" && version != "(devel)" && !strings.Contains(version, "+") && !module.IsPseudoVersion(version)
}

// effective returns the module that was compiled, as text, and its sum.
func effective(m *debug.Module) (text, sum string) {
	switch {
	case m == nil:
		return "missing", ""
	case m.Replace != nil && (m.Replace.Path != m.Path || m.Replace.Version != m.Version):
		return fmt.Sprintf("%s %s, replaced by %s %s", m.Path, m.Version, m.Replace.Path, m.Replace.Version), m.Replace.Sum
	case m.Replace != nil:
		return m.Path + " " + m.Version, m.Replace.Sum
	}
	return m.Path + " " + m.Version, m.Sum
}
