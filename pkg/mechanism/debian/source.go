package debian

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A source is an entry of apt's configuration: its fields, in order. A value may go on over indented lines.
type source [][2]string

func (s source) get(name string) string {
	for _, field := range s {
		if strings.EqualFold(field[0], name) {
			return field[1]
		}
	}
	return ""
}

func (s source) set(name, value string) {
	for n := range s {
		if strings.EqualFold(s[n][0], name) {
			s[n][1] = value
		}
	}
}

func (s source) String() string {
	var b strings.Builder
	for _, field := range s {
		fmt.Fprintf(&b, "%s: %s\n", field[0], field[1])
	}
	return b.String()
}

// restrict leaves of a source what Debian itself has for a release, and says whether there is any: what others offer for it
// (databases, engines, …) has no place in a system made here.
func (s source) restrict(codename string) bool {
	suites := slices.DeleteFunc(strings.Fields(s.get("Suites")), func(suite string) bool {
		return !slices.Contains([]string{codename, codename + "-updates", codename + "-security"}, suite)
	})
	switch {
	case len(suites) == 0,
		!slices.Contains(strings.Fields(s.get("Types")), "deb"),
		!slices.Contains(strings.Fields(s.get("Components")), "main"),
		slices.Contains([]string{"no", "false", "off", "0"}, strings.ToLower(s.get("Enabled"))),
		strings.Contains(s.get("URIs"), "cdrom:"):
		return false
	}
	s.set("Types", "deb")
	s.set("Suites", strings.Join(suites, " "))
	s.set("Components", "main")
	return true
}

// readSources reads all sources of a folder like /etc/apt.
func readSources(dir string) ([]source, error) {
	files := []string{filepath.Join(dir, "sources.list")}
	for _, pattern := range []string{"*.list", "*.sources"} {
		more, err := filepath.Glob(filepath.Join(dir, "sources.list.d", pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	var all []source
	for _, file := range files {
		data, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(file, ".sources") {
			all = append(all, parseSources(string(data))...)
		} else {
			all = append(all, parseList(string(data))...)
		}
	}
	return all, nil
}

// parseSources reads the format of .sources files: fields, and an empty line between entries.
func parseSources(text string) []source {
	var all []source
	var s source
	for line := range strings.Lines(text + "\n\n") {
		line = strings.TrimRight(line, " \t\r\n")
		switch {
		case strings.HasPrefix(line, "#"):
		case line == "":
			if len(s) > 0 {
				all = append(all, s)
			}
			s = nil
		case line[0] == ' ' || line[0] == '\t':
			if len(s) > 0 {
				s[len(s)-1][1] += "\n" + line
			}
		default:
			name, value, _ := strings.Cut(line, ":")
			s = append(s, [2]string{name, strings.TrimSpace(value)})
		}
	}
	return all
}

// longNames are those options of .list files that are fields of another name; the others have the same.
var longNames = map[string]string{"arch": "Architectures", "lang": "Languages", "target": "Targets"}

// parseList reads the format of .list files: "deb [name=value …] address suite component…", one entry per line.
func parseList(text string) []source {
	var all []source
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		kind, rest, ok := strings.Cut(strings.TrimSpace(strings.ReplaceAll(line, "\t", " ")), " ")
		rest = strings.TrimSpace(rest)
		if !ok || kind != "deb" || strings.Contains(rest, "cdrom:") {
			continue
		}
		options := ""
		if strings.HasPrefix(rest, "[") {
			if options, rest, ok = strings.Cut(rest[1:], "]"); !ok {
				continue
			}
		}
		words := strings.Fields(rest)
		if len(words) < 3 {
			continue
		}
		s := source{{"Types", kind}, {"URIs", words[0]}, {"Suites", words[1]}, {"Components", strings.Join(words[2:], " ")}}
		for _, option := range strings.Fields(options) {
			name, value, _ := strings.Cut(option, "=")
			name = strings.TrimRight(name, "+-")
			if long := longNames[name]; long != "" {
				name = long
			}
			s = append(s, [2]string{name, strings.ReplaceAll(value, ",", " ")})
		}
		all = append(all, s)
	}
	return all
}
