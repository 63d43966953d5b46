package bump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/mechanism/tail"
)

// compiled are files in the tree's folder for state with which make need not compile the targets again.
var compiled = []string{"mage", "mage.sum"}

// generate runs `make update` in the copy: the tree's own generators know best what is generated. A tree without a Makefile has none.
func (p *preparation) generate(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(p.copy, "Makefile")); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	p.Say("generating files")
	state := filepath.FromSlash(p.State)
	if err := os.MkdirAll(filepath.Join(p.copy, state), 0o777); err != nil {
		return err
	}
	for _, name := range compiled { // they only save time
		_ = atomicfile.Copy(filepath.Join(p.Root, state, name), filepath.Join(p.copy, state, name))
	}
	var out tail.Lines
	cmd := exec.CommandContext(ctx, "make", "update")
	cmd.Dir = p.copy
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, "MAKE") || name == "MFLAGS" // of the make that may have started this process
	})
	cmd.Stdout, cmd.Stderr = &out, &out
	child.Group(cmd) // with make's children, which would go on in the copy
	cmd.Cancel = func() error { return child.SignalGroup(cmd, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := child.Run(cmd, syscall.SIGTERM, nil); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return out.Explain(fmt.Errorf("generate files in the new tree: %w", err))
	}
	return nil
}

// history are documents that say what was, or what may be, and not what is: those with figures of a version that was measured.
var history = []string{
	"docs/bump.md", "docs/comparison.md", "docs/conformance.md", "docs/developing-components.md", "docs/distribution.md",
	"docs/generated-code.md", "docs/measurements.md", "docs/testing.md",
}

// current reports whether a file is a document that says which versions the tree has.
func current(name string) bool {
	if path.Ext(name) != ".md" || slices.Contains(history, name) {
		return false
	}
	folder, _, below := strings.Cut(name, "/")
	return name == "README.md" || below && slices.Contains([]string{"docs", "images", "release"}, folder)
}

// writeDocs changes versions in the documents.
func (p *preparation) writeDocs() error {
	for _, name := range p.files {
		if !current(name) {
			continue
		}
		old, err := p.read(name)
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

// replaceVersions replaces texts by others wherever they are no part of a longer word or version. All at once: what was put in
// is not replaced again.
func replaceVersions(data []byte, texts map[string]string) []byte {
	if len(texts) == 0 {
		return data
	}
	var alternatives []string
	for text := range texts {
		alternatives = append(alternatives, regexp.QuoteMeta(text))
	}
	slices.SortFunc(alternatives, func(a, b string) int { return len(b) - len(a) })
	pattern := regexp.MustCompile(strings.Join(alternatives, "|"))
	var out bytes.Buffer
	last := 0
	for _, at := range pattern.FindAllIndex(data, -1) {
		if partOfLonger(data, at[0], at[1]) {
			continue
		}
		out.Write(data[last:at[0]])
		out.WriteString(texts[string(data[at[0]:at[1]])])
		last = at[1]
	}
	out.Write(data[last:])
	return out.Bytes()
}

// partOfLonger reports whether a text goes on before start or after end, as v1.37.1 does in v1.37.10 and in v1.37.1.2.
func partOfLonger(data []byte, start, end int) bool {
	letter := func(i int) bool {
		return i >= 0 && i < len(data) && (data[i] >= '0' && data[i] <= '9' || data[i]|0x20 >= 'a' && data[i]|0x20 <= 'z')
	}
	return letter(start-1) || start > 0 && data[start-1] == '.' || letter(end) || end < len(data) && data[end] == '.' && letter(end+1)
}
