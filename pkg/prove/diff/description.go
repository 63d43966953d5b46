package diff

import (
	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/release"
)

// descriptions compares two release.json.
func descriptions(a, b member, f *File) error {
	x, err := readDescription(a)
	if err != nil {
		return err
	}
	y, err := readDescription(b)
	if err != nil {
		return err
	}
	f.addAll("artifacts", "%d are described in another way", unequal(x.Artifacts, y.Artifacts,
		func(a release.Artifact) string { return a.Name }))
	f.addAll("inputs", "%d differ", unequal(x.Inputs, y.Inputs, func(in release.Input) string {
		name := in.Name
		if in.Version != "" {
			name += "@" + in.Version
		}
		if on := in.Platform.String(); on != "/" && on != "" {
			name += " for " + on
		}
		return name
	}))
	x.Artifacts, y.Artifacts, x.Inputs, y.Inputs = nil, nil, nil, nil
	if !cmp.Equal(x, y) {
		f.add("release", "versions, settings or platforms differ")
	}
	if len(f.Reasons) == 0 {
		f.add("content", "the same description, written in another way")
	}
	return nil
}

// unequal names the elements that only one list has, or both have differently.
func unequal[T any](a, b []T, name func(T) string) []string {
	others := map[string][]T{}
	for _, t := range b {
		others[name(t)] = append(others[name(t)], t)
	}
	var differ []string
	for _, t := range a {
		n := name(t)
		same := others[n]
		switch {
		case len(same) == 0:
			differ = append(differ, n+" only in A")
			continue
		case !cmp.Equal(same[0], t):
			differ = append(differ, n)
		}
		others[n] = same[1:]
	}
	for _, t := range b {
		if n := name(t); len(others[n]) > 0 {
			differ, others[n] = append(differ, n+" only in B"), others[n][1:]
		}
	}
	return differ
}

func readDescription(m member) (*release.Release, error) {
	data, err := m.read()
	if err != nil {
		return nil, err
	}
	return release.Unmarshal(data)
}
