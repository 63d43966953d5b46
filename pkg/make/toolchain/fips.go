package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/tree/module"
)

// FIPSEnv returns the setting of the go command that compiles with a version of Go's cryptographic module. Without a version there is none.
// It follows GOFIPS140=off of the constructed environment.
func FIPSEnv(version string) []string {
	if version == "" {
		return nil
	}
	return []string{"GOFIPS140=" + version}
}

// FIPS returns the version of Go's cryptographic module that GOFIPS140 selects: v1.0.0 is v1.0.0-c2097c7c. The sum is that of its code.
// The error names the versions that the Go has.
func (g *Go) FIPS(version string) (module.Pinned, error) {
	dir := filepath.Join(g.Root, "lib", "fips140")
	selected := version
	if alias, err := os.ReadFile(filepath.Join(dir, version+".txt")); err == nil {
		selected = strings.TrimSpace(string(alias))
	}
	data, err := os.ReadFile(filepath.Join(dir, "fips140.sum"))
	if err != nil {
		return module.Pinned{}, fmt.Errorf("%s has no versions of Go's cryptographic module: %w", g.Version, err)
	}
	var have []string
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line) // NAME.zip SHA256 H1
		if len(fields) != 3 || !strings.HasSuffix(fields[0], ".zip") {
			continue
		}
		of := strings.TrimSuffix(fields[0], ".zip")
		if _, err := os.Stat(filepath.Join(dir, fields[0])); err != nil {
			continue
		}
		if of == selected {
			return module.Pinned{Version: module.Version{Path: module.FIPS, Version: of}, Sum: fields[2]}, nil
		}
		short, _, _ := strings.Cut(of, "-")
		have = append(have, short)
	}
	semver.Sort(have)
	return module.Pinned{}, fmt.Errorf("%s has no version %s of Go's cryptographic module; it has %s", g.Version, version,
		strings.Join(slices.Compact(have), " and "))
}
