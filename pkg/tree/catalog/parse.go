package catalog

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// parse reads release.yaml strictly: what it doesn't know, it reports.
func parse(data []byte, p *problems) declaration {
	var d declaration
	doc, ok := document(data, p)
	if !ok {
		return d
	}
	p.mapping(doc, "the file",
		need("module", p.textInto(&d.module)),
		need("go", func(n *yaml.Node, what string) {
			p.mapping(n, what,
				need("version", p.textInto(&d.goVersion)),
				need("sums", func(n *yaml.Node, what string) {
					for _, f := range p.entries(n, what) {
						d.sums = append(d.sums, entry{f.key, p.text(f.value, "the sum of "+f.key.value)})
					}
				}),
			)
		}),
		may("tags", p.textsInto(&d.tags)),
		need("sets", func(n *yaml.Node, what string) {
			for _, f := range p.entries(n, what) {
				d.sets = append(d.sets, declaredSet{f.key, p.texts(f.value, "set "+f.key.value)})
			}
		}),
		need("binaries", func(n *yaml.Node, what string) {
			for _, n := range p.list(n, what) {
				b := declaredBinary{line: n.Line}
				ok := p.mapping(n, "a binary",
					need("name", p.textInto(&b.name)),
					may("module", p.textInto(&b.module)),
					may("package", p.textInto(&b.pkg)),
					may("test", p.textInto(&b.test)),
					may("stamp", p.textInto(&b.stamp)),
					may("sets", p.textsInto(&b.sets)),
					may("folder", p.textInto(&b.folder)),
					may("only", p.textsInto(&b.only)),
				)
				if ok {
					d.binaries = append(d.binaries, b)
				}
			}
		}),
		may("images", func(n *yaml.Node, what string) {
			for _, n := range p.list(n, what) {
				i := declaredImage{line: n.Line}
				p.mapping(n, "an image",
					need("name", p.textInto(&i.name)),
					need("title", p.textInto(&i.title)),
					may("base", p.textInto(&i.base)),
					may("binary", p.textInto(&i.binary)),
					may("with", p.textsInto(&i.with)),
					may("version", p.textInto(&i.version)),
					may("user", p.textInto(&i.user)),
					may("set", p.textInto(&i.set)),
					may("entrypoint", p.textsInto(&i.entrypoint)),
					may("arguments", p.textsInto(&i.arguments)),
					may("setuid", p.flagInto(&i.setuid)),
				)
				d.images = append(d.images, i)
			}
		}),
		need("registry", p.textInto(&d.registry)),
	)
	return d
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
			p.add(more.Line, "a second document begins here; the file has to be one")
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
