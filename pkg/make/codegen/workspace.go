package codegen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/atomicfile"
)

// A workspace is a copy of a module without generated code, to which generators write.
type workspace struct {
	own     *Own
	dir     string
	tmp     string
	tools   *Tools
	workdir workdir
	before  map[string][]byte // by path in the module
}

// workspace creates one among the temporary files of a task.
func (o *Own) workspace(ctx context.Context, t *action.Task) (*workspace, error) {
	if err := o.parse(); err != nil {
		return nil, err
	}
	w := &workspace{own: o, dir: filepath.Join(t.Dir(), "module"), tmp: t.Dir(), tools: o.tools, before: map[string][]byte{}}
	if w.tools == nil {
		g, err := o.Go(ctx, t.Report.Progress)
		if err != nil {
			return nil, err
		}
		if w.tools, err = NewTools(ctx, o.Root, g, t.Report.Progress); err != nil {
			return nil, err
		}
	}
	w.workdir = workdir{dir: w.dir, env: []string{"GOFLAGS=-mod=readonly", "GOWORK=off"}}
	if o.Header != "" {
		w.workdir.header = filepath.Join(o.Root, filepath.FromSlash(o.Header))
	}
	from := map[string]string{"go.mod": o.file("go.mod"), "go.sum": o.file("go.sum")} // by name in the copy
	if o.ModFile != "" {
		mod := filepath.Join(o.Root, filepath.FromSlash(o.ModFile))
		from["go.mod"], from["go.sum"] = mod, strings.TrimSuffix(mod, ".mod")+".sum"
	}
	for _, files := range o.files {
		for _, name := range files {
			from[name] = o.file(name)
		}
	}
	for name, file := range from {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := write(w.path(name), data); err != nil {
			return nil, err
		}
		w.before[name] = data
	}
	return w, w.replaceFolders(ctx)
}

// replaceFolders makes the folders that replace modules absolute, since the copy is elsewhere.
func (w *workspace) replaceFolders(ctx context.Context) error {
	for _, r := range w.own.Module.Replaces {
		if r.New.Version != "" {
			continue
		}
		folder := r.New.Path
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(w.own.Module.Dir, filepath.FromSlash(folder))
		}
		old := r.Old.Path
		if r.Old.Version != "" {
			old += "@" + r.Old.Version
		}
		if err := w.tools.run(ctx, w.workdir, w.tools.gocmd(), "mod", "edit", "-replace="+old+"="+folder); err != nil {
			return err
		}
	}
	return nil
}

func (w *workspace) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// explain names files of the copy as in the tree.
func (w *workspace) explain(err error) error {
	text := err.Error()
	if renamed := strings.ReplaceAll(text, w.dir+string(filepath.Separator), w.own.Module.Name+"/"); renamed != text {
		return errors.New(renamed)
	}
	return err
}

// deliver makes the files that generators wrote outputs of the actions. An action for a package gets what is in its folder; one for
// several gets everything.
func (w *workspace) deliver(t *action.Task, stale []*action.Action) error {
	generated, err := w.generated()
	if err != nil {
		return err
	}
	for _, a := range stale {
		out := t.Path(a.Outputs[0])
		for name, data := range generated {
			if len(stale) > 1 && path.Dir(name) != w.own.folderOf(a) {
				continue
			}
			file := filepath.Join(out, filepath.FromSlash(w.own.named(name)))
			if err := write(file, data); err != nil {
				return err
			}
		}
	}
	return nil
}

// generated returns the files that are new or have changed.
func (w *workspace) generated() (map[string][]byte, error) {
	generated := map[string][]byte{}
	files, err := filesBelow(w.dir, nil)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		if name != "go.mod" && name != "go.sum" && !bytes.Equal(data, w.before[name]) {
			generated[name] = data
		}
	}
	return generated, nil
}

// write writes a file, and makes the folders above it.
func write(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// A Difference is a file in the tree that differs from the generated one.
type Difference struct {
	File string // relative to the root, with slashes
	Kind string // "missing", "stale", "no longer generated"
	data []byte // as it should be; nil: it should not be there
}

// Wanted reports whether the file should be there.
func (d Difference) Wanted() bool { return d.data != nil }

// Differences compares the tree with the outputs of the actions, which have run.
func (o *Own) Differences(actions []*action.Action) ([]Difference, error) {
	wanted := map[string][]byte{}
	for _, a := range actions {
		dir := filepath.Join(o.Root, filepath.FromSlash(a.Outputs[0]))
		files, err := filesBelow(dir, nil)
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			if wanted[name], err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				return nil, err
			}
		}
	}
	var found []Difference
	for name, data := range wanted {
		old, err := os.ReadFile(filepath.Join(o.Root, filepath.FromSlash(name)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			found = append(found, Difference{name, "missing", data})
		case err != nil:
			return nil, err
		case !bytes.Equal(old, data):
			found = append(found, Difference{name, "stale", data})
		}
	}
	left, err := o.leftovers(wanted)
	if err != nil {
		return nil, err
	}
	for _, name := range left {
		found = append(found, Difference{File: name, Kind: "no longer generated"})
	}
	slices.SortFunc(found, func(a, b Difference) int { return strings.Compare(a.File, b.File) })
	return found, nil
}

// leftovers lists the generated files of the module that are not wanted.
func (o *Own) leftovers(wanted map[string][]byte) ([]string, error) {
	files, err := filesBelow(o.Module.Dir, otherModule)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, file := range files {
		name := path.Join(o.Module.Name, file)
		if path.Ext(name) == ".go" && wanted[name] == nil && generatedBy.Match(head(filepath.Join(o.Module.Dir, filepath.FromSlash(file)))) {
			left = append(left, name)
		}
	}
	return left, nil
}

// Sync applies differences to the tree. Each file is replaced at once.
func (o *Own) Sync(differences []Difference) error {
	for _, d := range differences {
		file := filepath.Join(o.Root, filepath.FromSlash(d.File))
		if d.data == nil {
			if err := os.Remove(file); err != nil {
				return err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := atomicfile.WriteFile(file, d.data, 0o644); err != nil {
			return fmt.Errorf("write generated code: %w", err)
		}
	}
	return nil
}
