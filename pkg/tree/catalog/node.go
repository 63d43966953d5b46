package catalog

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// A field is one that a mapping may have, and how to read it. What names the value in messages.
type field struct {
	name     string
	read     func(n *yaml.Node, what string)
	required bool
}

func need(name string, read func(*yaml.Node, string)) field { return field{name, read, true} }
func may(name string, read func(*yaml.Node, string)) field  { return field{name, read, false} }

// mapping reads a mapping whose fields are fixed, if n is one.
func (p *problems) mapping(n *yaml.Node, what string, fields ...field) (ok bool) {
	if !p.is(n, yaml.MappingNode, what) {
		return false
	}
	names := make([]string, len(fields))
	byName := map[string]field{}
	for i, f := range fields {
		names[i], byName[f.name] = f.name, f
	}
	given := map[string]bool{}
	for _, e := range p.entries(n, what) {
		given[e.key.value] = true
		f, ok := byName[e.key.value]
		if !ok {
			p.unknown(e.key.line, "field", e.key.value, names)
			continue
		}
		f.read(e.value, f.name)
	}
	for _, f := range fields {
		if f.required && !given[f.name] {
			p.add(n.Line, "%s has no field %q", what, f.name)
		}
	}
	return true
}

// A pair is an entry of a mapping whose value was not looked at yet.
type pair struct {
	key   text
	value *yaml.Node
}

// entries returns the entries of a mapping, without those whose key is malformed or repeated.
func (p *problems) entries(n *yaml.Node, what string) []pair {
	if !p.is(n, yaml.MappingNode, what) {
		return nil
	}
	n = resolve(n)
	var pairs []pair
	first := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key := p.text(n.Content[i], "a key of "+what)
		if key.value == "" {
			continue
		}
		if line, seen := first[key.value]; seen {
			p.add(key.line, "key %q is there twice, first on line %d", key.value, line)
			continue
		}
		first[key.value] = key.line
		pairs = append(pairs, pair{key, n.Content[i+1]})
	}
	return pairs
}

// list returns the items of a list.
func (p *problems) list(n *yaml.Node, what string) []*yaml.Node {
	if !p.is(n, yaml.SequenceNode, what) {
		return nil
	}
	return resolve(n).Content
}

// texts returns the items of a list of texts.
func (p *problems) texts(n *yaml.Node, what string) []text {
	var texts []text
	for _, item := range p.list(n, what) {
		texts = append(texts, p.text(item, "an item of "+what))
	}
	return texts
}

func (p *problems) text(n *yaml.Node, what string) text {
	t := text{line: n.Line}
	if !p.is(n, yaml.ScalarNode, what) {
		return t
	}
	n = resolve(n)
	if tag := n.ShortTag(); tag != "!!str" {
		p.add(t.line, "%s has to be text; put quotes around %s", what, n.Value)
		return t
	}
	t.value = n.Value
	return t
}

func (p *problems) textInto(t *text) func(*yaml.Node, string) {
	return func(n *yaml.Node, what string) { *t = p.text(n, what) }
}

func (p *problems) textsInto(t *[]text) func(*yaml.Node, string) {
	return func(n *yaml.Node, what string) { *t = p.texts(n, what) }
}

func (p *problems) flagInto(flag *bool) func(*yaml.Node, string) {
	return func(n *yaml.Node, what string) {
		if !p.is(n, yaml.ScalarNode, what) {
			return
		}
		if err := n.Decode(flag); err != nil {
			p.add(n.Line, "%s has to be true or false, not %s", what, resolve(n).Value)
		}
	}
}

// is reports whether n is something of that kind, with something in it.
func (p *problems) is(n *yaml.Node, kind yaml.Kind, what string) bool {
	r := resolve(n)
	empty := r.Kind == yaml.ScalarNode && (strings.TrimSpace(r.Value) == "" || r.ShortTag() == "!!null") ||
		r.Kind != yaml.ScalarNode && len(r.Content) == 0
	switch {
	case empty:
		p.add(n.Line, "%s is empty", what)
		return false
	case r.Kind != kind:
		p.add(n.Line, "%s has to be %s, not %s", what, kinds[kind], kinds[r.Kind])
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
