package catalog

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"slipway.build/pkg/mechanism/suggest"
)

// A decoder reads release.yaml into a Catalog, strictly: it reports what it doesn't know. What was left out or is
// malformed stays empty, and malformed items are left out of their lists.
//
// The fields of release.yaml are those of the Catalog's structs that have a tag `file:"required"` or `file:"optional"`, by their
// names in JSON. A tag `each:"a binary"` says what messages call an item of the field; %s in it is the key of an entry. A map with the tag
// `file:"rest"` gets the keys that are no fields of its struct.
type decoder struct {
	*problems
	lines map[any]int  // where a value was declared, by its address, or by an entry
	bad   map[any]bool // addresses of values with something wrong in them
}

// An entry is an entry of a map; the map's values have no address.
type entry struct {
	m   any // address of the map
	key any
}

// line returns the line on which a value was declared, by its address, or 0 if it was left out.
func (d *decoder) line(address any) int { return d.lines[address] }

// has reports whether a value was declared, well-formed or not.
func (d *decoder) has(address any) bool { return d.lines[address] != 0 }

// decode reads a file into a Catalog.
func decode(data []byte, p *problems) (*Catalog, *decoder) {
	c := &Catalog{}
	d := &decoder{p, map[any]int{}, map[any]bool{}}
	if doc, ok := document(data, p); ok && d.checkForm(doc) {
		d.value(doc, reflect.ValueOf(c).Elem(), "the file", "")
	}
	return c, d
}

// Form is the form of release.yaml that this slipway reads. It changes when a field gets another name or meaning, or when a new one is
// required. A file that names no form has this one.
const Form = "v1"

// checkForm reports whether a file has the form that this slipway reads. In another one, most else would seem wrong, too.
func (d *decoder) checkForm(doc *yaml.Node) bool {
	if doc.Kind != yaml.MappingNode {
		return true
	}
	for i := 0; i+1 < len(doc.Content); i += 2 {
		if key, form := doc.Content[i], doc.Content[i+1]; key.Value == "form" && form.Value != Form {
			d.add(form.Line, "it has form %s, and this slipway reads form %s: another version of slipway is for this tree, see its go.mod",
				form.Value, Form)
			return false
		}
	}
	return true
}

// value reads a node into v, which is addressable, and reports whether nothing is wrong with it.
func (d *decoder) value(n *yaml.Node, v reflect.Value, what, each string) bool {
	before := len(d.found)
	address := v.Addr().Interface()
	d.lines[address] = n.Line
	switch target := address.(type) {
	case *time.Time:
		if s, ok := d.scalar(n, what); ok {
			parsed, err := time.Parse(time.RFC3339, s)
			if err != nil {
				d.add(n.Line, "%s: %q is not a time like 2006-01-02T15:04:05Z", what, s)
			} else {
				*target = parsed.UTC()
			}
		}
	case encoding.TextUnmarshaler:
		if s, ok := d.scalar(n, what); ok {
			if err := target.UnmarshalText([]byte(s)); err != nil {
				d.add(n.Line, "%v", err)
			}
		}
	default:
		switch v.Kind() {
		case reflect.Struct:
			d.structure(n, v, what)
		case reflect.Map:
			d.mapping(n, v, what, each)
		case reflect.Slice:
			d.list(n, v, what, each)
		case reflect.Bool:
			if s, ok := d.scalar(n, what); ok && resolve(n).Decode(address) != nil {
				d.add(n.Line, "%s must be true or false, not %s", what, s)
			}
		case reflect.String:
			s, _ := d.text(n, what)
			v.SetString(s)
		default:
			panic(fmt.Sprintf("%s: nothing reads a %s", what, v.Type()))
		}
	}
	d.bad[address] = len(d.found) > before
	return !d.bad[address]
}

// structure reads a mapping whose keys are the fields of a struct.
func (d *decoder) structure(n *yaml.Node, v reflect.Value, what string) {
	if !d.is(n, yaml.MappingNode, what) {
		return
	}
	var names []string
	byName := map[string]int{}
	rest := -1
	for i := range v.NumField() {
		switch f := v.Type().Field(i); f.Tag.Get("file") {
		case "":
		case "rest":
			rest = i
			v.Field(i).Set(reflect.MakeMap(f.Type))
		default:
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names, byName[name] = append(names, name), i
		}
	}
	given := map[string]bool{}
	for _, p := range d.pairs(n, what) {
		given[p.key] = true
		i, known := byName[p.key]
		if !known && rest >= 0 {
			d.entry(p, v.Field(rest), what, v.Type().Field(rest).Tag.Get("each"))
			continue
		}
		if !known {
			d.add(p.line, "%v", suggest.Unknown("field", p.key, names))
			continue
		}
		d.value(p.value, v.Field(i), p.key, v.Type().Field(i).Tag.Get("each"))
	}
	for _, name := range names {
		if v.Type().Field(byName[name]).Tag.Get("file") == "required" && !given[name] {
			d.add(n.Line, "%s has no field %q", what, name)
		}
	}
}

// mapping reads a mapping whose keys the file's author chose.
func (d *decoder) mapping(n *yaml.Node, v reflect.Value, what, each string) {
	v.Set(reflect.MakeMap(v.Type()))
	for _, p := range d.pairs(n, what) {
		d.entry(p, v, what, each)
	}
}

// entry reads a pair into a map.
func (d *decoder) entry(p pair, v reflect.Value, what, each string) {
	key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	known := d.value(p.node, key, "a key of "+what, "")
	d.value(p.value, value, fmt.Sprintf(each, p.key), "")
	if known {
		d.lines[entry{v.Addr().Interface(), key.Interface()}] = p.line
		v.SetMapIndex(key, value)
	}
}

// list reads the items of a list, without the malformed ones. Structs are kept with what is well-formed in them.
func (d *decoder) list(n *yaml.Node, v reflect.Value, what, each string) {
	if !d.is(n, yaml.SequenceNode, what) {
		return
	}
	if each == "" {
		each = "an item of " + what
	}
	items := resolve(n).Content
	v.Grow(len(items)) // at once, so that the addresses of items stay
	for _, item := range items {
		i := v.Len()
		v.SetLen(i + 1)
		if at := v.Index(i); !d.value(item, at, each, "") && at.IsZero() {
			v.SetLen(i)
		}
	}
}

// A pair is a key and a value of a mapping.
type pair struct {
	key         string
	line        int
	node, value *yaml.Node
}

// pairs returns the pairs of a mapping, without those with a malformed or repeated key.
func (d *decoder) pairs(n *yaml.Node, what string) []pair {
	if !d.is(n, yaml.MappingNode, what) {
		return nil
	}
	n = resolve(n)
	var pairs []pair
	first := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key, ok := d.text(n.Content[i], "a key of "+what)
		if !ok {
			continue
		}
		line := n.Content[i].Line
		if other, seen := first[key]; seen {
			d.add(line, "duplicate key %q, first on line %d", key, other)
			continue
		}
		first[key] = line
		pairs = append(pairs, pair{key, line, n.Content[i], n.Content[i+1]})
	}
	return pairs
}

func (d *decoder) text(n *yaml.Node, what string) (s string, ok bool) {
	if s, ok = d.scalar(n, what); !ok {
		return "", false
	}
	if resolve(n).ShortTag() != "!!str" {
		d.add(n.Line, "%s must be text; put quotes around %s", what, s)
		return "", false
	}
	return s, true
}

// scalar returns a scalar as it was written.
func (d *decoder) scalar(n *yaml.Node, what string) (s string, ok bool) {
	if !d.is(n, yaml.ScalarNode, what) {
		return "", false
	}
	return resolve(n).Value, true
}

// is reports whether n is something of that kind, with something in it.
func (d *decoder) is(n *yaml.Node, kind yaml.Kind, what string) bool {
	r := resolve(n)
	empty := r.Kind == yaml.ScalarNode && (strings.TrimSpace(r.Value) == "" || r.ShortTag() == "!!null") ||
		r.Kind != yaml.ScalarNode && len(r.Content) == 0
	switch {
	case empty:
		d.add(n.Line, "%s is empty", what)
		return false
	case r.Kind != kind:
		d.add(n.Line, "%s must be %s, not %s", what, kinds[kind], kinds[r.Kind])
		return false
	}
	return true
}

var kinds = map[yaml.Kind]string{
	yaml.MappingNode:  "a mapping",
	yaml.SequenceNode: "a list",
	yaml.ScalarNode:   "text",
}

// resolve returns what a node stands for, if it is an alias.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

var (
	yamlError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

	// The library counts lines from 0 in the messages of its parser, and from 1 in those of its scanner.
	parserError = regexp.MustCompile(`^did not find expected (<|key$|node content$|'-' indicator$|',' or)`)
)

// document returns the one thing in a YAML file.
func document(data []byte, p *problems) (root *yaml.Node, ok bool) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		p.add(0, "the file is empty")
		return nil, false
	}
	if err == nil {
		err = dec.Decode(&more)
		if err == nil {
			p.add(more.Line, "a second document begins here; the file must have only one")
			return nil, false
		}
	}
	if !errors.Is(err, io.EOF) {
		line, cause := 0, err.Error()
		if m := yamlError.FindStringSubmatch(cause); m != nil {
			line, _ = strconv.Atoi(m[1]) // stays 0 where yaml names no line
			cause = m[2]
			if parserError.MatchString(cause) {
				line++
			}
		}
		p.add(line, "%s", cause)
		return nil, false
	}
	return doc.Content[0], true
}
