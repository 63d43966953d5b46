package rebuild

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
	"slipway.build/pkg/release/provenance"
)

// Sign states, by a key, that the release was made again with the same bytes, in a file of the folder that was made. It returns the file.
// Nobody can state it of a report with a difference.
func (t *Tree) Sign(ctx context.Context, r *Report, key signature.PrivateKey) (string, error) {
	if !r.Same || len(r.Subjects) != len(t.Statement.Subject) {
		return "", errors.New("what was made is not the same: that is not signed")
	}
	summary, err := provenance.Summarize(t.Statement.Content, time.Now())
	if err != nil {
		return "", err
	}
	b, err := signature.Attest(ctx, key, summary)
	if err != nil {
		return "", err
	}
	data, err := b.Marshal()
	if err != nil {
		return "", err
	}
	file := filepath.Join(t.Made(), filepath.FromSlash(release.RebuildFile(key.Public().Hint())))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	return file, atomicfile.WriteFile(file, data, 0o644)
}
