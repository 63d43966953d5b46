package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"slipway.build/pkg/maintain/kubetest"
	"slipway.build/pkg/tree/patch"
)

// checkFields finds what patches change incompatibly in the API. The files that define the messages of the API's types are generated from
// Go code, and in the same folders.
func checkFields(s *kubetest.Sources) ([]Problem, error) {
	patches, err := patch.LoadProject(s.Root, "")
	if err != nil {
		return nil, err
	}
	original, err := s.Original()
	if err != nil {
		return nil, err
	}
	changes := map[string][]string{} // names of patches, by the folders in which they change files
	meant := map[string]bool{}
	for _, p := range patches {
		for _, c := range p.Commits {
			for _, found := range breaks.FindAllStringSubmatch(c.Message, -1) {
				meant[found[1]] = true
			}
		}
		for _, name := range p.Paths() {
			if dir := path.Dir(name); !slices.Contains(changes[dir], p.Name) {
				changes[dir] = append(changes[dir], p.Name)
			}
		}
	}
	var problems []Problem
	for dir, by := range changes {
		name := path.Join(dir, "generated.proto")
		old, err := original.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		now, err := os.ReadFile(filepath.Join(s.Repository, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, c := range incompatible(parseProto(old), parseProto(now)) {
			if !meant[c.name] {
				problems = append(problems, Problem{Check: "api", Message: strings.Join(by, ", ") + ": " + c.what})
			}
		}
	}
	return problems, nil
}

// breaks matches the line of a patch's message that names a message or a field that the patch changes incompatibly on purpose.
var breaks = regexp.MustCompile(`(?m)^Breaks-API: (\S+)\s*$`)

// A field is the type of a field of a message, such as "optional string", and its number.
type field struct{ kind, number string }

// messages are the fields of protocol buffer messages, by the name of the message and their own.
type messages map[string]map[string]field

var (
	protoPackage = regexp.MustCompile(`^package (\S+);`)
	protoMessage = regexp.MustCompile(`^message (\w+) {`)
	protoField   = regexp.MustCompile(`^  (\w\S* \S+) (\w+) = (\d+)`)
)

// parseProto reads a generated.proto, which has a line for each field, and no messages in messages.
func parseProto(data []byte) messages {
	found := messages{}
	var pkg, message string
	for line := range strings.Lines(string(data)) {
		if m := protoPackage.FindStringSubmatch(line); m != nil {
			pkg = m[1]
		} else if m := protoMessage.FindStringSubmatch(line); m != nil {
			message = pkg + "." + m[1]
			found[message] = map[string]field{}
		} else if m := protoField.FindStringSubmatch(line); m != nil {
			found[message][m[2]] = field{m[1], m[3]}
		}
	}
	return found
}

// A change is one of a message or of a field.
type change struct{ name, what string }

// incompatible lists what messages no longer have, or have in another way.
func incompatible(old, now messages) []change {
	var changes []change
	for _, message := range slices.Sorted(maps.Keys(old)) {
		if now[message] == nil {
			changes = append(changes, change{message, "the message " + message + " is removed"})
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(old[message])) {
			was, is := old[message][name], now[message][name]
			full, what := message+"."+name, ""
			switch {
			case is == field{}:
				what = fmt.Sprintf("with number %s is removed", was.number)
			case is.number != was.number:
				what = fmt.Sprintf("has number %s instead of %s", is.number, was.number)
			case is.kind != was.kind:
				what = fmt.Sprintf("is %q instead of %q", is.kind, was.kind)
			default:
				continue
			}
			changes = append(changes, change{full, "the field " + full + " " + what})
		}
	}
	return changes
}
