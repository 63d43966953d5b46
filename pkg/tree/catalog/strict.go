package catalog

import "reflect"

// Decode reads another YAML file of a tree into the struct that v points to, as strictly as release.yaml, by the same tags of its fields.
// Then check looks for what is wrong with the values. It finds where a value was declared by its address (0: it was left out), and adds
// problems by line. All problems come back at once, as an *[InvalidError].
func Decode(file string, data []byte, v any, check func(line func(address any) int, add func(line int, format string, args ...any))) error {
	p := &problems{file: file}
	d := &decoder{p, map[any]int{}, map[any]bool{}}
	if doc, ok := document(data, p); ok {
		d.value(doc, reflect.ValueOf(v).Elem(), "the file", "")
		check(d.line, p.add)
	}
	return p.err()
}
