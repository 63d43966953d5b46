package recipe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Spec returns the recipe of an action: the recipes of the code that runs it, then a line "field=value" for each value in the
// spec's JSON. So a new field of a spec is part of the key automatically, and a changed field can be named. Spec panics if
// the spec cannot be marshaled.
func Spec(spec any, code ...string) []string {
	data, err := json.Marshal(spec)
	if err != nil {
		panic(fmt.Sprintf("recipe: %v", err))
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		panic(fmt.Sprintf("recipe: %v", err)) // it was just encoded
	}
	return flatten(slices.Clone(code), "", value)
}

// flatten appends a line for each value below path. Empty lists and objects have a line, too, because they differ from missing ones.
func flatten(lines []string, path string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		if len(v) > 0 {
			for _, key := range slices.Sorted(maps.Keys(v)) {
				lines = flatten(lines, join(path, key), v[key])
			}
			return lines
		}
	case []any:
		if len(v) > 0 {
			for i, element := range v {
				lines = flatten(lines, fmt.Sprintf("%s[%d]", path, i), element)
			}
			return lines
		}
	case string:
		return append(lines, fmt.Sprintf("%s=%q", path, v))
	}
	text, _ := json.Marshal(value) // it was just decoded
	return append(lines, path+"="+string(text))
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
