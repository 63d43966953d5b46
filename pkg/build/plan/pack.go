package plan

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/checksum"
)

// pack plans one tarball, and beside it the file with its SHA-512, so that the checksums need no second reading.
func (b *builder) pack(name string, recipe, inputs []string, list func(*action.Task) ([]archive.Entry, error)) {
	tar, sum := slashed(Tars, name), sha512Of(name)
	b.tars = append(b.tars, name)
	b.add(&action.Action{
		ID:      "package " + name,
		Phase:   "package",
		Recipe:  append([]string{Recipe, archive.Recipe, fmt.Sprint("time ", b.Stamp.Date.Unix())}, recipe...),
		Inputs:  inputs,
		Outputs: []string{tar, sum},
		Run: func(ctx context.Context, t *action.Task) error {
			entries, err := list(t)
			if err != nil {
				return err
			}
			packer := archive.Packer{Cache: b.abs(archives), Time: b.Stamp.Date}
			digest, err := digested(t.Path(tar), func(w io.Writer) error { return packer.TarGz(ctx, w, entries) })
			if err != nil {
				return err
			}
			t.Known(tar, digest.SHA256)
			return os.WriteFile(t.Path(sum), []byte(digest.SHA512+"\n"), 0o644)
		},
	})
}

func sha512Of(tarball string) string { return slashed(stage, "sha512", tarball) }

// digested makes a file of what a function writes, and digests it on the way.
func digested(name string, write func(io.Writer) error) (checksum.Digest, error) {
	f, err := os.Create(name)
	if err != nil {
		return checksum.Digest{}, err
	}
	defer f.Close()
	d := checksum.NewDigester(f)
	err = write(d)
	digest, failed := d.Digest()
	if err := cmp.Or(err, failed); err != nil {
		return checksum.Digest{}, err
	}
	return digest, f.Close()
}

// checksums plans SHA256SUMS and SHA512SUMS of every tarball of the release.
func (b *builder) checksums() {
	names := slices.Sorted(slices.Values(b.tars))
	short, long := slashed(Tars, "SHA256SUMS"), slashed(Tars, "SHA512SUMS")
	var inputs []string
	for _, name := range names {
		inputs = append(inputs, slashed(Tars, name), sha512Of(name))
	}
	b.add(&action.Action{
		ID:      "checksums",
		Phase:   "checksums",
		Recipe:  []string{checksum.Recipe},
		Inputs:  inputs,
		Outputs: []string{short, long},
		Run: func(ctx context.Context, t *action.Task) error {
			// Whoever has checksums has a release of one tree at one time.
			if err := b.Unchanged(ctx); err != nil {
				return err
			}
			sums := checksum.Sums{}
			for _, name := range names {
				sum, err := os.ReadFile(b.abs(sha512Of(name)))
				if err != nil {
					return err
				}
				sums[name] = checksum.Digest{SHA256: t.Sum(slashed(Tars, name)), SHA512: string(bytes.TrimSpace(sum))}
			}
			if err := os.WriteFile(t.Path(short), sums.SHA256SUMS(), 0o644); err != nil {
				return err
			}
			return os.WriteFile(t.Path(long), sums.SHA512SUMS(), 0o644)
		},
	})
}
