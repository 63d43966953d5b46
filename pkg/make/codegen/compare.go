package codegen

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// A Comparison says how generated files differ from those that were there.
type Comparison struct {
	Files                    int      // that were there, or are now
	Edited, Missing, Surplus []string // sorted; Missing were not generated again, Surplus were not there
}

// Differ returns the number of files that differ.
func (c *Comparison) Differ() int { return len(c.Edited) + len(c.Missing) + len(c.Surplus) }

// Text lists the files that differ, and how many these are.
func (c *Comparison) Text(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, kind := range []struct {
		name  string
		files []string
	}{{"differs", c.Edited}, {"is not made", c.Missing}, {"is not upstream's", c.Surplus}} {
		for _, f := range kind.files {
			fmt.Fprintf(b, "%s: %s\n", f, kind.name)
		}
	}
	fmt.Fprintf(b, "%d of %d generated files differ from upstream's\n", c.Differ(), c.Files)
	return b.Flush()
}

// Compare generates files as Generate does, and compares them with those that were in the repository.
func (r *Repository) Compare(ctx context.Context, names []string) (*Comparison, error) {
	var err error
	if r.sources, err = scan(r.Dir); err != nil {
		return nil, err
	}
	before, err := r.sums(names)
	if err != nil {
		return nil, err
	}
	if err := r.Generate(ctx, names, nil); err != nil {
		return nil, err
	}
	after, err := r.sums(names)
	if err != nil {
		return nil, err
	}
	return compare(before, after), nil
}

func compare(before, after map[string][sha256.Size]byte) *Comparison {
	all := maps.Clone(before)
	maps.Copy(all, after)
	c := &Comparison{Files: len(all)}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, old := before[name]
		switch now, still := after[name]; {
		case !still:
			c.Missing = append(c.Missing, name)
		case !old:
			c.Surplus = append(c.Surplus, name)
		case now != was:
			c.Edited = append(c.Edited, name)
		}
	}
	return c
}

// sums returns the digests of the files of groups: of all if none is named.
func (r *Repository) sums(names []string) (map[string][sha256.Size]byte, error) {
	sums := map[string][sha256.Size]byte{}
	for _, g := range selected(names) {
		files, err := r.owned(g)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			data, err := os.ReadFile(r.path(f))
			if err != nil {
				return nil, err
			}
			sums[f] = sha256.Sum256(data)
		}
	}
	return sums, nil
}
