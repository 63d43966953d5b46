package bump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/modfile"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/folder"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/stamp"
)

// compiled are files in the tree's folder for state with which make need not compile the targets again.
var compiled = []string{"mage", "mage.sum"}

// generate runs `make update` in the copy: the tree's own generators know best what is generated. A tree without a Makefile has none.
func (p *preparation) generate(ctx context.Context) error {
	if _, err := os.Stat(p.file("Makefile")); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	p.Say("generating files")
	c, err := catalog.Load(copyDir(p.Root))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.file(folder.State), 0o777); err != nil {
		return err
	}
	for _, name := range compiled { // they only save time
		_ = atomicfile.Copy(filepath.Join(p.Root, filepath.FromSlash(folder.State), name), p.file(folder.State+"/"+name))
	}
	var out tail.Lines
	cmd := exec.CommandContext(ctx, "make", "update")
	cmd.Dir = copyDir(p.Root)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, "MAKE") || name == "MFLAGS" // of the make that may have started this process
	})
	// The copy is no repository, which would say its version. What is generated does not depend on it.
	cmd.Env = append(cmd.Env, stamp.Environ(stamp.Stamp{
		Version: c.Kubernetes, Commit: p.commit, TreeState: "clean", Date: time.Unix(0, 0),
	})...)
	cmd.Stdout, cmd.Stderr = &out, &out
	child.Group(cmd) // with make's children, which would go on in the copy
	cmd.Cancel = func() error { return child.SignalGroup(cmd, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := p.withFolders(func() error { return child.Run(cmd, syscall.SIGTERM, nil) }); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return out.Explain(fmt.Errorf("generate files in the new tree: %w", err))
	}
	return nil
}

// withFolders calls f while the copy's go.mod names folders outside of the tree, such as that of slipway, by absolute paths: from the copy,
// relative ones lead elsewhere.
func (p *preparation) withFolders(f func() error) (err error) {
	m, err := module.Load(copyDir(p.Root), ".")
	if errors.Is(err, fs.ErrNotExist) || err == nil && m.FolderOutside() == "" {
		return f()
	}
	if err != nil {
		return err
	}
	original, err := os.ReadFile(p.file("go.mod"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.write("go.mod", original)) }()
	if err := p.editGoMod(".", func(m *modfile.File) error {
		for _, r := range slices.Clone(m.Replace) {
			if dir := filepath.FromSlash(r.New.Path); r.New.Version == "" && !filepath.IsAbs(dir) && !filepath.IsLocal(dir) {
				if err := m.AddReplace(r.Old.Path, r.Old.Version, filepath.Join(p.Root, dir), ""); err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return f()
}

// history lists the documents in which versions stay: they give measurements or examples of a certain version.
var history = []string{
	"docs/bump.md", "docs/comparison.md", "docs/conformance.md", "docs/developing-components.md", "docs/distribution.md",
	"docs/generated-code.md", "docs/measurements.md", "docs/testing.md",
}

// current reports whether a file is a document that says which versions the tree has.
func current(name string) bool {
	if path.Ext(name) != ".md" || slices.Contains(history, name) {
		return false
	}
	top, _, below := strings.Cut(name, "/")
	return name == "README.md" || below && slices.Contains([]string{"docs", "images", "release"}, top)
}

// writeDocs changes versions in the documents.
func (p *preparation) writeDocs(ctx context.Context) error {
	names, err := list(ctx, p.copied, "ls-files")
	if err != nil {
		return err
	}
	for _, name := range names {
		if !current(name) {
			continue
		}
		old, err := os.ReadFile(p.file(name))
		if errors.Is(err, fs.ErrNotExist) { // of a project that is left out
			continue
		}
		if err != nil {
			return err
		}
		if data := replaceVersions(old, p.docs); !bytes.Equal(data, old) {
			if err := p.write(name, data); err != nil {
				return err
			}
		}
	}
	return nil
}

// replaceVersions replaces texts wherever they are no part of a longer word or version, as v1.37.1 is in v1.37.10 and in v1.37.1.2. All
// at once: what was put in is not replaced again.
func replaceVersions(data []byte, texts map[string]string) []byte {
	if len(texts) == 0 {
		return data
	}
	var alternatives []string
	for text := range texts {
		alternatives = append(alternatives, regexp.QuoteMeta(text))
	}
	slices.SortFunc(alternatives, func(a, b string) int { return len(b) - len(a) }) // 3.7.0-0 before 3.7.0
	const more = "[0-9A-Za-z.]*"
	pattern := regexp.MustCompile(more + "(?:" + strings.Join(alternatives, "|") + ")" + more)
	return pattern.ReplaceAllFunc(data, func(found []byte) []byte {
		text := bytes.TrimRight(found, ".") // ends of sentences
		if to, ok := texts[string(text)]; ok {
			return append([]byte(to), found[len(text):]...)
		}
		return found
	})
}
