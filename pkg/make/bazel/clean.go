package bazel

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"slipway.build/pkg/mechanism/tail"
)

// lastFile, relative to the root, records the last Bazel that ran in the tree, so that Clean need not find one, which could
// mean to make one.
const lastFile = folder + "/last"

// A last has what Clean needs to run the last Bazel again.
type last struct {
	Program string
	System  string   // "" means this machine's
	Binds   []string // into the system
}

func (b *Bazel) remember() error {
	data, err := json.Marshal(last{b.program, b.system, b.binds()})
	if err != nil {
		return err
	}
	return write(filepath.Join(b.options.Root, filepath.FromSlash(lastFile)), string(data))
}

// Clean removes Bazel's output of a tree, in its own folders in the user's cache, and stops its server. It does nothing
// in a tree in which Bazel never ran.
func Clean(ctx context.Context, root string) error {
	file := noteOf(root)
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var l last
	if err := json.Unmarshal(data, &l); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	args := []string{"clean", "--expunge"}
	dir := Workspace(root)
	c := exec.CommandContext(ctx, l.Program, args...)
	if l.System != "" {
		c = enter(ctx, l.System, dir, l.Binds, command(l.Program, l.Binds, args))
	}
	output := &tail.Lines{}
	c.Dir, c.Stdout, c.Stderr = dir, output, output
	if err := c.Run(); err != nil {
		return output.Explain(fmt.Errorf("remove what Bazel has made: %s clean --expunge: %w", l.Program, err))
	}
	return os.Remove(file)
}

// Used reports whether Bazel ran in a tree, so that Clean has something to remove.
func Used(root string) bool {
	_, err := os.Stat(noteOf(root))
	return err == nil
}

func noteOf(root string) string { return filepath.Join(root, filepath.FromSlash(lastFile)) }
