package packer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.build/pkg/make/execute"
	"slipway.build/pkg/make/plan"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/mechanism/unpack"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
	"slipway.build/pkg/tree/catalog"
)

// makeRelease packs a release in a scratch folder, and puts its tarballs and checksums into the folder a.to.
func makeRelease(ctx context.Context, a arguments) error {
	// Everything is on the file system of the outputs: tarballs are renamed, and /tmp may be in memory.
	scratch, err := os.MkdirTemp(a.to, "pack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if scratch, err = filepath.Abs(scratch); err != nil {
		return err
	}
	tree := filepath.Join(scratch, "tree")
	if err := unpackTar(ctx, a.sources, tree); err != nil {
		return fmt.Errorf("unpack %s: %w", a.sources, err)
	}
	if err := unpackTar(ctx, a.thirdParty, tree); err != nil {
		return fmt.Errorf("unpack %s: %w", a.thirdParty, err)
	}
	licenses := filepath.Join(scratch, "licenses")
	if err := unpackTar(ctx, a.licenses, licenses); err != nil {
		return fmt.Errorf("unpack %s: %w", a.licenses, err)
	}
	from, err := a.prebuilt(licenses)
	if err != nil {
		return err
	}
	planned, err := plan.Pack(ctx, tree, from, a.platform)
	if err != nil {
		return err
	}
	if planned.Licensed.Policy.HasPolicy() {
		if err := execute.CheckLicenses(ctx, planned, action.Options{}); err != nil {
			return err
		}
	}
	if err := runGraph(ctx, planned.Graph); err != nil {
		return err
	}
	tars := filepath.Join(tree, filepath.FromSlash(project.Tars))
	if err := same(a.sources, filepath.Join(tars, catalog.SourceTarball)); err != nil {
		return err
	}
	return a.take(tars)
}

// prebuilt returns the files that Bazel provides, by absolute paths.
func (a arguments) prebuilt(licenses string) (plan.Prebuilt, error) {
	status, err := os.ReadFile(a.status)
	if err != nil {
		return plan.Prebuilt{}, err
	}
	binaries := map[string]string{}
	for label, file := range a.binaries {
		if binaries[label], err = filepath.Abs(file); err != nil {
			return plan.Prebuilt{}, err
		}
	}
	return plan.Prebuilt{Binaries: binaries, Licenses: licenses, Status: status}, nil
}

// runGraph runs the actions, and prints their output if one of them fails.
func runGraph(ctx context.Context, graph *action.Graph) error {
	var output strings.Builder
	err := graph.Run(ctx, action.Options{Events: func(e action.Event) {
		if e.Kind == action.Output {
			output.WriteString(e.Text + "\n")
		}
	}})
	if err != nil {
		fmt.Fprint(os.Stderr, output.String())
	}
	return err
}

// same returns an error unless two source tarballs have the same bytes: only then is the release the one that the tree would give.
func same(given, packed string) error {
	one, err := checksum.File(given)
	if err != nil {
		return err
	}
	other, err := checksum.File(packed)
	if err != nil {
		return err
	}
	if one != other {
		return fmt.Errorf("%s, unpacked and packed again, differs: this is a bug in slipway", given)
	}
	return nil
}

// unpackTar unpacks a tar file, compressed or not, into a folder. Its links may lead anywhere, as those of sources do.
func unpackTar(ctx context.Context, name, dir string) error {
	f, err := unpack.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return unpack.RootFilesystem(ctx, f, dir)
}

// take moves a release's files to where Bazel expects them, if they are those that it expects.
func (a arguments) take(tars string) error {
	made, err := release.Read(tars)
	if err != nil {
		return err
	}
	files := append(provenance.Files(made), release.File)
	for _, artifact := range made.Artifacts {
		if artifact.Path != "" {
			files = append(files, artifact.Path)
		}
	}
	missing := map[string]bool{}
	for _, name := range a.names {
		missing[name] = true
	}
	for _, name := range files {
		if !missing[name] {
			return fmt.Errorf("the release holds %s, which Bazel does not expect: run make update", name)
		}
		delete(missing, name)
		if err := os.MkdirAll(filepath.Dir(filepath.Join(a.to, name)), 0o755); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(tars, name), filepath.Join(a.to, name)); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return errors.New("the release does not hold " + strings.Join(slices.Sorted(maps.Keys(missing)), ", ") + ": run make update")
	}
	return nil
}
