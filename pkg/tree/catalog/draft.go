package catalog

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A Draft is the text of a release.yaml that is being changed. What is not changed stays as it is, comments included.
// A Draft is not validated: Load does that, when it is written.
type Draft struct{ data []byte }

// ReadDraft reads the release.yaml of the repository at root.
func ReadDraft(root string) (*Draft, error) {
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(File)))
	if err != nil {
		return nil, err
	}
	return &Draft{data}, nil
}

// Bytes returns the text.
func (d *Draft) Bytes() []byte { return d.data }

// Where returns the place of a field within a field, as file:line, or the file alone if it has none.
func (d *Draft) Where(key, field string) string {
	if top, err := d.top(); err == nil {
		if _, v := lookup(top, key); v != nil {
			if k, _ := lookup(resolve(v), field); k != nil {
				return fmt.Sprintf("%s:%d", File, k.Line)
			}
		}
	}
	return File
}

// SetToolchain writes a Go with its sums under a key of the file: "go", or "toolchain", which comes after it with a comment.
func (d *Draft) SetToolchain(key, comment string, t Toolchain) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s:\n  version: %s\n  sums:\n", key, t.Version)
	for _, host := range hosts(t.Sums) {
		fmt.Fprintf(&text, "    %s: %s\n", host, t.Sums[host])
	}
	if t.FIPS != "" {
		fmt.Fprintf(&text, "  fips: %s\n", t.FIPS)
	}
	if t.FIPSProjects {
		text.WriteString("  fipsProjects: true\n")
	}
	if t.FIPSEnvironment {
		text.WriteString("  fipsEnvironment: true\n")
	}
	top, err := d.top()
	if err != nil {
		return err
	}
	if k, v := lookup(top, key); k != nil {
		d.apply(d.lines(k.Line, lastLine(v), text.String()))
		return nil
	}
	k, v := lookup(top, "go")
	if k == nil {
		return fmt.Errorf("%s has no field %q", File, "go")
	}
	after := lastLine(v)
	d.apply(d.lines(after+1, after, "\n# "+comment+"\n"+text.String()))
	return nil
}

// hosts returns the hosts of sums, linux before darwin and windows, as people list them.
func hosts(sums map[string]string) []string {
	linuxFirst := strings.NewReplacer("linux-", " ")
	return slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return strings.Compare(linuxFirst.Replace(a), linuxFirst.Replace(b)) })
}

// SetSource writes the commit that Kubernetes' modules are made of, with a comment, after the Go that compiles. A zero one removes it.
func (d *Draft) SetSource(s Source) error {
	if err := d.drop("source"); err != nil || s == (Source{}) {
		return err
	}
	text := "\n# Kubernetes' modules are made of this commit, and do not come from a module proxy.\nsource:\n"
	for _, field := range []struct{ key, value string }{
		{"repository", s.Repository}, {"ref", s.Ref}, {"commit", s.Commit}, {"tree", s.Tree},
	} {
		if field.value == "" {
			continue
		}
		quoted, err := yaml.Marshal(field.value) // a commit can look like a number
		if err != nil {
			return err
		}
		text += "  " + field.key + ": " + string(quoted)
	}
	top, err := d.top()
	if err != nil {
		return err
	}
	k, v := lookup(top, "go")
	if k == nil {
		return fmt.Errorf("%s has no field %q", File, "go")
	}
	d.apply(d.lines(lastLine(v)+1, lastLine(v), text))
	return nil
}

// DropAddon removes an addon, and the list if it has no other.
func (d *Draft) DropAddon(name string) error { return d.dropEntry("addons", "name", name) }

// DropToolchain removes what SetToolchain wrote under a key, with the comment above it.
func (d *Draft) DropToolchain(key string) error { return d.drop(key) }

// drop removes a field of the file, with the comment above it.
func (d *Draft) drop(key string) error {
	top, err := d.top()
	if err != nil {
		return err
	}
	k, v := lookup(top, key)
	if k == nil {
		return nil
	}
	lines := bytes.SplitAfter(d.data, []byte("\n"))
	first := k.Line
	for first > 1 && bytes.HasPrefix(lines[first-2], []byte("#")) {
		first--
	}
	if first > 1 && len(bytes.TrimSpace(lines[first-2])) == 0 {
		first--
	}
	d.apply(d.lines(first, lastLine(v), ""))
	return nil
}

// overridesComment stands above the first override that SetOverride writes.
const overridesComment = "# Modules that are newer than upstream selected, or forks. The go.mod files require these versions, too."

// SetOverride writes an override in the place of the one of its module, or after the others.
func (d *Draft) SetOverride(o Override) error {
	var text strings.Builder
	prefix := "- "
	for _, f := range []struct {
		key    string
		values []string
		list   bool
	}{{"module", []string{o.Module}, false}, {"version", []string{o.Version}, false}, {"with", []string{o.With}, false},
		{"fixes", o.Fixes, true}, {"reason", []string{o.Reason}, false}, {"in", o.In, true}} {
		var values []string
		for _, v := range f.values {
			quoted, err := yaml.Marshal(v)
			if err != nil {
				return err
			}
			if v != "" {
				values = append(values, string(bytes.TrimSpace(quoted)))
			}
		}
		if len(values) == 0 {
			continue
		}
		value := strings.Join(values, ", ")
		if f.list {
			value = "[" + value + "]"
		}
		fmt.Fprintf(&text, "%s%s: %s\n", prefix, f.key, value)
		prefix = "  "
	}
	top, err := d.top()
	if err != nil {
		return err
	}
	_, list := lookup(top, "overrides")
	if list == nil {
		if len(d.data) > 0 && d.data[len(d.data)-1] != '\n' {
			d.data = append(d.data, '\n')
		}
		d.data = append(d.data, "\n"+overridesComment+"\noverrides:\n"+text.String()...)
		return nil
	}
	if entry := entryOf(list, "module", o.Module); entry != nil {
		d.apply(d.lines(entry.Line, lastLine(entry), text.String()))
		return nil
	}
	after := lastLine(list)
	d.apply(d.lines(after+1, after, text.String()))
	return nil
}

// DropOverride removes the override of a module, and the list if it has no other.
func (d *Draft) DropOverride(module string) error { return d.dropEntry("overrides", "module", module) }

// dropEntry removes the entry of a list that has a value under a key, or the list if it has no other.
func (d *Draft) dropEntry(name, key, value string) error {
	top, err := d.top()
	if err != nil {
		return err
	}
	_, list := lookup(top, name)
	entry := entryOf(list, key, value)
	switch {
	case entry == nil:
		return nil
	case len(resolve(list).Content) == 1:
		return d.drop(name)
	}
	d.apply(d.lines(entry.Line, lastLine(entry), ""))
	return nil
}

// entryOf returns the entry of a list, which may be nil, that has a value under a key, or nil.
func entryOf(list *yaml.Node, key, value string) *yaml.Node {
	if list == nil {
		return nil
	}
	for _, entry := range resolve(list).Content {
		if _, v := lookup(resolve(entry), key); v != nil && resolve(v).Value == value {
			return entry
		}
	}
	return nil
}

// DropProject removes the binaries of a module, and the images that hold these.
func (d *Draft) DropProject(module string) error {
	top, err := d.top()
	if err != nil {
		return err
	}
	value := func(entry *yaml.Node, key string) string {
		if _, v := lookup(resolve(entry), key); v != nil {
			return resolve(v).Value
		}
		return ""
	}
	dropped := map[string]bool{}
	var splices []splice
	collect := func(list string, drop func(*yaml.Node) bool) {
		if _, v := lookup(top, list); v != nil {
			for _, entry := range resolve(v).Content {
				if drop(entry) {
					splices = append(splices, d.lines(entry.Line, lastLine(entry), ""))
				}
			}
		}
	}
	collect("binaries", func(entry *yaml.Node) bool {
		ours := value(entry, "module") == module
		if ours {
			dropped[value(entry, "name")] = true
		}
		return ours
	})
	collect("images", func(entry *yaml.Node) bool {
		with := &yaml.Node{}
		if _, v := lookup(resolve(entry), "with"); v != nil {
			with = resolve(v)
		}
		return dropped[value(entry, "binary")] ||
			slices.ContainsFunc(with.Content, func(name *yaml.Node) bool { return dropped[resolve(name).Value] })
	})
	d.apply(splices...)
	return nil
}

// SetImage changes what the image at a position of the list is, counted from 0: its name, version, time and commit. An empty or zero
// field of to stays as it is, but a new version without a Revision has none. The time can be that of other images, too: those that
// refer to the same anchor.
func (d *Draft) SetImage(at int, to Image) error {
	image, err := d.image(at)
	if err != nil {
		return err
	}
	created := ""
	if !to.Created.IsZero() {
		created = to.Created.UTC().Format(time.RFC3339)
	}
	var splices []splice
	for _, set := range []struct{ key, value string }{
		{"created", created}, {"revision", to.Revision}, {"version", to.Version}, {"name", to.Name},
	} {
		k, v := lookup(image, set.key)
		_, version := lookup(image, "version")
		var e splice
		switch {
		case set.value == "" && set.key == "revision" && k != nil && version != nil && to.Version != "" && resolve(version).Value != to.Version:
			e, err = d.without(image, k, v)
		case set.value == "":
			continue
		case k != nil:
			e, err = d.scalar(v, set.key, set.value)
		case set.key == "revision":
			e, err = d.afterTime(image, "revision: "+set.value)
		default:
			err = fmt.Errorf("%s:%d: the image has no field %q", File, image.Line, set.key)
		}
		if err != nil {
			return err
		}
		splices = append(splices, e)
	}
	d.apply(splices...)
	return nil
}

func (d *Draft) top() (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(d.data, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s is not a mapping", File)
	}
	return doc.Content[0], nil
}

// image finds the image at a position of the list.
func (d *Draft) image(at int) (*yaml.Node, error) {
	top, err := d.top()
	if err != nil {
		return nil, err
	}
	if _, list := lookup(top, "images"); list != nil {
		if all := resolve(list).Content; at >= 0 && at < len(all) {
			return resolve(all[at]), nil
		}
	}
	return nil, fmt.Errorf("%s has no image at position %d of its list", File, at)
}

// lookup returns the nodes of a key and its value in a mapping.
func lookup(n *yaml.Node, key string) (k, v *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

func lastLine(n *yaml.Node) int {
	last := n.Line
	for _, c := range n.Content {
		last = max(last, lastLine(c))
	}
	return last
}

// A splice replaces a part of the text.
type splice struct {
	start, end int // in bytes
	text       string
}

// apply makes splices, which do not overlap.
func (d *Draft) apply(splices ...splice) {
	slices.SortFunc(splices, func(a, b splice) int { return cmp.Compare(b.start, a.start) }) // from the end, so that positions stay
	for _, e := range splices {
		d.data = slices.Concat(d.data[:e.start], []byte(e.text), d.data[e.end:])
	}
}

// lines returns the splice that replaces lines, counted from 1. If last is before first, it inserts text before first.
func (d *Draft) lines(first, last int, text string) splice {
	return splice{d.offset(first, 1), d.offset(last+1, 1), text}
}

// offset returns where a line and a column are, in bytes. Both are counted from 1, and a column is a number of characters.
func (d *Draft) offset(line, column int) (at int) {
	for range line - 1 {
		n := bytes.IndexByte(d.data[at:], '\n')
		if n < 0 {
			return len(d.data)
		}
		at += n + 1
	}
	for range column - 1 {
		_, size := utf8.DecodeRune(d.data[at:])
		at += size
	}
	return at
}

// span returns where the text of a scalar is, without the anchor before it.
func (d *Draft) span(n *yaml.Node) (start, end int, err error) {
	start = d.offset(n.Line, n.Column)
	for d.data[start] == '&' {
		start += bytes.IndexByte(d.data[start:], ' ') + 1
	}
	switch n.Style &^ yaml.TaggedStyle {
	case yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle:
		quote := d.data[start]
		size := bytes.IndexByte(d.data[start+1:], quote)
		if size < 0 || bytes.ContainsAny(d.data[start+1:start+1+size], "\\\n") {
			return 0, 0, fmt.Errorf("%s:%d: slipway cannot change a value that is quoted like this", File, n.Line)
		}
		return start, start + size + 2, nil
	case 0:
		if n.Kind == yaml.ScalarNode && bytes.HasPrefix(d.data[start:], []byte(n.Value)) {
			return start, start + len(n.Value), nil
		}
		if n.Kind == yaml.AliasNode {
			return start, start + 1 + len(n.Value), nil
		}
	}
	return 0, 0, fmt.Errorf("%s:%d: slipway cannot change a value that is written like this", File, n.Line)
}

// scalar returns the splice that gives a field another value.
func (d *Draft) scalar(n *yaml.Node, key, value string) (splice, error) {
	n = resolve(n)
	text := value
	if key != "created" { // a time needs no quotes, and has none
		quoted, err := yaml.Marshal(value)
		if err != nil {
			return splice{}, err
		}
		text = string(bytes.TrimSpace(quoted))
	}
	if n.Style == yaml.DoubleQuotedStyle && text == value {
		text = `"` + value + `"`
	}
	start, end, err := d.span(n)
	return splice{start, end, text}, err
}

// afterTime returns the splice that inserts a field of an image after its time.
func (d *Draft) afterTime(image *yaml.Node, field string) (splice, error) {
	created, time := lookup(image, "created")
	if created == nil {
		return splice{}, fmt.Errorf("%s: an image with a version has no time", File)
	}
	separator := ", "
	if image.Style&yaml.FlowStyle == 0 {
		separator = "\n" + strings.Repeat(" ", created.Column-1)
	}
	_, end, err := d.span(time)
	return splice{end, end, separator + field}, err
}

// without returns the splice that drops a field of an image: its lines, or, in braces, the text with the comma before it.
func (d *Draft) without(image, k, v *yaml.Node) (splice, error) {
	if image.Style&yaml.FlowStyle == 0 {
		return d.lines(k.Line, lastLine(v), ""), nil
	}
	start, _, err := d.span(k)
	if err != nil {
		return splice{}, err
	}
	_, end, err := d.span(v)
	if err != nil {
		return splice{}, err
	}
	for start > 0 && strings.IndexByte(" \n,", d.data[start-1]) >= 0 {
		start--
	}
	return splice{start, end, ""}, nil
}
