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

// SetToolchain writes a Go with its sums under a key of the file: "go", or "toolchain", which comes after it with a comment.
func (d *Draft) SetToolchain(key, comment string, t Toolchain) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s:\n  version: %s\n  sums:\n", key, t.Version)
	for _, host := range hosts(t.Sums) {
		fmt.Fprintf(&text, "    %s: %s\n", host, t.Sums[host])
	}
	top, err := d.top()
	if err != nil {
		return err
	}
	if k, v := lookup(top, key); k != nil {
		d.replaceLines(k.Line, lastLine(v), text.String())
		return nil
	}
	k, v := lookup(top, "go")
	if k == nil {
		return fmt.Errorf("%s has no field %q", File, "go")
	}
	after := lastLine(v)
	d.replaceLines(after+1, after, "\n# "+comment+"\n"+text.String())
	return nil
}

// hosts returns the hosts of sums, linux before darwin and windows, as people list them.
func hosts(sums map[string]string) []string {
	sorted := slices.Sorted(maps.Keys(sums))
	slices.SortStableFunc(sorted, func(a, b string) int {
		rank := func(host string) int {
			if strings.HasPrefix(host, "linux-") {
				return 0
			}
			return 1
		}
		return rank(a) - rank(b)
	})
	return sorted
}

// DropToolchain removes what SetToolchain wrote under a key, with the comment above it.
func (d *Draft) DropToolchain(key string) error {
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
	d.replaceLines(first, lastLine(v), "")
	return nil
}

// DropProject removes the binaries of a module, and the images of these.
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
	var entries []*yaml.Node
	collect := func(list string, drop func(*yaml.Node) bool) {
		if _, v := lookup(top, list); v != nil {
			for _, entry := range resolve(v).Content {
				if drop(entry) {
					entries = append(entries, entry)
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
	collect("images", func(entry *yaml.Node) bool { return dropped[value(entry, "binary")] })
	// from the end, so that lines stay where they are
	slices.SortFunc(entries, func(a, b *yaml.Node) int { return cmp.Compare(b.Line, a.Line) })
	for _, entry := range entries {
		d.replaceLines(entry.Line, lastLine(entry), "")
	}
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
	if _, version := lookup(image, "version"); to.Version != "" && version != nil &&
		resolve(version).Value != to.Version && to.Revision == "" {
		if err := d.dropField(at, "revision"); err != nil {
			return err
		}
	}
	created := ""
	if !to.Created.IsZero() {
		created = to.Created.UTC().Format(time.RFC3339)
	}
	for _, set := range []struct{ key, value string }{
		{"created", created}, {"revision", to.Revision}, {"version", to.Version}, {"name", to.Name},
	} {
		if set.value == "" {
			continue
		}
		image, err := d.image(at) // again, since the lines have moved
		if err != nil {
			return err
		}
		switch k, v := lookup(image, set.key); {
		case k != nil:
			err = d.setScalar(v, set.key, set.value)
		case set.key == "revision": // stands after the time
			created, time := lookup(image, "created")
			separator := ", "
			if created != nil && image.Style&yaml.FlowStyle == 0 {
				separator = "\n" + strings.Repeat(" ", created.Column-1)
			}
			err = d.insertAfter(time, separator+"revision: "+set.value)
		default:
			err = fmt.Errorf("%s:%d: the image has no field %q", File, image.Line, set.key)
		}
		if err != nil {
			return err
		}
	}
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

// replaceLines replaces lines, counted from 1. If last is before first, it inserts text before first.
func (d *Draft) replaceLines(first, last int, text string) {
	lines := bytes.SplitAfter(d.data, []byte("\n"))
	head, tail := bytes.Join(lines[:first-1], nil), bytes.Join(lines[min(last, len(lines)):], nil)
	d.data = slices.Concat(head, []byte(text), tail)
}

// span returns where the text of a scalar is, without the anchor before it.
func (d *Draft) span(n *yaml.Node) (start, end int, err error) {
	lines := bytes.SplitAfter(d.data, []byte("\n"))
	for _, line := range lines[:n.Line-1] {
		start += len(line)
	}
	for range n.Column - 1 { // a column is a number of characters
		start += len(string([]rune(string(d.data[start:min(start+4, len(d.data))]))[0]))
	}
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

func (d *Draft) setScalar(n *yaml.Node, key, value string) error {
	n = resolve(n)
	start, end, err := d.span(n)
	if err != nil {
		return err
	}
	text := value
	if key != "created" { // a time needs no quotes, and has none
		quoted, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		text = string(bytes.TrimSpace(quoted))
	}
	if n.Style == yaml.DoubleQuotedStyle && text == value {
		text = `"` + value + `"`
	}
	d.data = slices.Concat(d.data[:start], []byte(text), d.data[end:])
	return nil
}

// insertAfter inserts text after a scalar of an image.
func (d *Draft) insertAfter(n *yaml.Node, text string) error {
	if n == nil {
		return fmt.Errorf("%s: an image with a version has no time", File)
	}
	_, end, err := d.span(n)
	if err != nil {
		return err
	}
	d.data = slices.Concat(d.data[:end], []byte(text), d.data[end:])
	return nil
}

// dropField removes a field of the image at a position: its lines, or, in braces, the text with the comma before it.
func (d *Draft) dropField(at int, key string) error {
	image, err := d.image(at)
	if err != nil {
		return err
	}
	k, v := lookup(image, key)
	if k == nil {
		return nil
	}
	if image.Style&yaml.FlowStyle == 0 {
		d.replaceLines(k.Line, lastLine(v), "")
		return nil
	}
	start, _, err := d.span(k)
	if err != nil {
		return err
	}
	_, end, err := d.span(v)
	if err != nil {
		return err
	}
	for start > 0 && strings.IndexByte(" \n,", d.data[start-1]) >= 0 {
		start--
	}
	d.data = slices.Concat(d.data[:start], d.data[end:])
	return nil
}
