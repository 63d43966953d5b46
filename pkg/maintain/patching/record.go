package patching

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"slipway.build/pkg/mechanism/atomicfile"
)

// A record says which commits of a copy came of which patches. It is in the copy's .git.
type record struct {
	Project string     `json:"project"`
	Version string     `json:"version"` // of upstream
	Key     string     `json:"key"`     // of upstream's code
	Base    string     `json:"base"`    // the commit with upstream's code
	Tip     string     `json:"tip"`     // the last commit that came of a patch
	Patches []recorded `json:"patches"`
	Stopped bool       `json:"stopped,omitempty"` // at the first patch that is not whole, since it conflicts
	Moving  bool       `json:"moving,omitempty"`  // patches are being applied: what is not committed is nobody's work
	Before  string     `json:"before,omitempty"`  // the last commit of the patches that others replace, until the copy is reset to Base
}

// A recorded patch is a patch as it was when the copy was laid out, or saved last.
type recorded struct {
	Name    string         `json:"name"`   // of the file
	SHA256  string         `json:"sha256"` // of the file
	Size    int            `json:"mails"`  // how many commits it consists of
	Commits []recordedMail `json:"commits"`
}

// A recordedMail is a commit that came of a patch.
type recordedMail struct {
	ID       string `json:"id"`
	Title    string `json:"title"`
	Resolved bool   `json:"resolved,omitempty"` // it is not what the file says, but how a conflict was resolved
}

func (p recorded) whole() bool { return len(p.Commits) == p.Size }

// next returns the index of the first patch that is not whole, or -1.
func (r *record) next() int {
	for i, p := range r.Patches {
		if !p.whole() {
			return i
		}
	}
	return -1
}

func recordFile(dir string) string { return filepath.Join(dir, ".git", "slipway.json") }

func readRecord(dir string) (*record, error) {
	data, err := os.ReadFile(recordFile(dir))
	if err != nil {
		return nil, err
	}
	r := &record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", recordFile(dir), err)
	}
	return r, nil
}

func (r *record) write(dir string) error {
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(recordFile(dir), append(data, '\n'), 0o666)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
