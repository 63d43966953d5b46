package bazel

import (
	"context"
	"fmt"

	"slipway.build/pkg/build/road"
)

// A Made is the Bazel road seen from inside: Bazel has compiled already, and runs whoever takes this road as one of its actions.
type Made struct {
	Version string            // of the Go that release.yaml pins, as runtime.Version has it
	Files   map[string]string // by label: what Bazel made, for one platform
}

// Name is that of the Bazel road, as the binaries are its.
func (*Made) Name() string { return "bazel" }

// Recipe says which binaries there are.
func (m *Made) Recipe(c road.Compilation) []string {
	return []string{"road bazel, made", m.Version, c.Platform.String(), fmt.Sprint(m.Files)}
}

// Compile copies what Bazel made, after the same checks.
func (m *Made) Compile(_ context.Context, c road.Compilation, _ road.Report) error {
	labels, files := make([]string, len(c.Targets)), make([]string, len(c.Targets))
	for i, t := range c.Targets {
		labels[i] = Label(c, t)
		if files[i] = m.Files[labels[i]]; files[i] == "" {
			return fmt.Errorf("%s: the release holds it, and Bazel did not make it: run make update", labels[i])
		}
	}
	return take(c, labels, files, m.Version)
}
