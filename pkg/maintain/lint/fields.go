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
	for _, p := range patches {
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
		for _, change := range incompatible(parseProto(old), parseProto(now)) {
			problems = append(problems, Problem{Check: "api", Message: strings.Join(by, ", ") + ": " + change})
		}
	}
	return problems, nil
}

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

// incompatible lists what messages no longer have, or have in another way.
func incompatible(old, now messages) []string {
	var changes []string
	for _, message := range slices.Sorted(maps.Keys(old)) {
		if now[message] == nil {
			changes = append(changes, "the message "+message+" is removed")
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(old[message])) {
			was, is := old[message][name], now[message][name]
			full := message + "." + name
			switch {
			case is == field{}:
				changes = append(changes, fmt.Sprintf("the field %s, number %s, is removed", full, was.number))
			case is.number != was.number:
				changes = append(changes, fmt.Sprintf("the field %s has number %s instead of %s", full, is.number, was.number))
			case is.kind != was.kind:
				changes = append(changes, fmt.Sprintf("the field %s is %q instead of %q", full, is.kind, was.kind))
			}
		}
	}
	return changes
}
