package describe

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/release"
	"slipway.build/pkg/tree/module"
)

// A BinariesSpec names binaries, and the file that keeps what a description says of them. A description needs only this file, so binaries
// that a shared cache has are not fetched for it.
type BinariesSpec struct {
	Name   string // of the action
	Files  []File // the binaries
	Output string
}

// A program is what a description says of a binary.
type program struct {
	Size           int64
	SHA256, SHA512 string
	Package        string              // import path of its main package
	Modules        []module.Dependency // that it links
	FIPS           string              `json:",omitempty"` // version of Go's cryptographic module
}

// Binaries returns the action that reads binaries.
func Binaries(root string, s BinariesSpec) *action.Action {
	return &action.Action{
		ID:      s.Name,
		Phase:   "checksums",
		Recipe:  code.Recipe(s),
		Inputs:  inputsOf(s.Files),
		Outputs: []string{s.Output},
		Run: func(ctx context.Context, t *action.Task) error {
			known := sumsIn(t.Previous(s.Output))
			programs := make([]program, len(s.Files))
			g, ctx := errgroup.WithContext(ctx)
			g.SetLimit(runtime.GOMAXPROCS(0))
			for i, f := range s.Files {
				g.Go(func() (err error) {
					if err := ctx.Err(); err != nil {
						return err
					}
					programs[i], err = readProgram(root, f, t.Sum(f.Path), known)
					return err
				})
			}
			if err := g.Wait(); err != nil {
				return err
			}
			named := map[string]program{}
			for i, f := range s.Files {
				named[f.Artifact] = programs[i]
			}
			data, err := json.MarshalIndent(named, "", "\t")
			if err != nil {
				return err
			}
			return os.WriteFile(t.Path(s.Output), append(data, '\n'), 0o644)
		},
	}
}

// readProgram reads a binary whose SHA-256 is known. Its SHA-512 may be known from an earlier run, by the SHA-256.
func readProgram(root string, f File, sum string, known map[string]string) (program, error) {
	file := filepath.Join(root, filepath.FromSlash(f.Path))
	info, err := os.Stat(file)
	if err != nil {
		return program{}, err
	}
	linked, err := module.ReadBinary(file)
	if err != nil {
		return program{}, err
	}
	p := program{Size: info.Size(), SHA256: sum, SHA512: known[sum], Package: linked.Package, Modules: linked.Modules,
		FIPS: linked.Settings["GOFIPS140"]}
	if p.SHA512 == "" {
		p.SHA512, err = f.sha512(root)
	}
	return p, err
}

// sumsIn returns the SHA-512 sums in a file that an earlier run has made, by SHA-256. The rest may be what older code has read.
func sumsIn(file string) map[string]string {
	known := map[string]string{}
	last, _ := readPrograms(file) // there may be none; what cannot be read is computed
	for _, p := range last {
		known[p.SHA256] = p.SHA512
	}
	return known
}

// readPrograms reads files that Binaries has made.
func readPrograms(files ...string) (map[string]program, error) {
	programs := map[string]program{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &programs); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return programs, nil
}

// binaries fills in what the finished binaries say, except for their modules.
func (d *describer) binaries() (err error) {
	if d.programs, err = readPrograms(d.absAll(d.Binaries)...); err != nil {
		return err
	}
	for i := range d.Release.Artifacts {
		a := &d.Release.Artifacts[i]
		if a.Kind != release.Binary {
			continue
		}
		p, ok := d.programs[a.Name]
		if !ok {
			return fmt.Errorf("%s: no file in Binaries describes it", a.Name)
		}
		a.Size, a.SHA256, a.SHA512, a.Package = p.Size, p.SHA256, p.SHA512, p.Package
	}
	return nil
}
