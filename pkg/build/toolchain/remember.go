package toolchain

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"slipway.build/pkg/mechanism/atomicfile"
)

// rememberedSum is sum, but reads all those files only once: the user's cache folder holds, per GOROOT, the last state and
// its sum. Without such a folder it is computed each time.
func (g *goroot) rememberedSum() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return g.sum()
	}
	name := sha256.Sum256([]byte(g.module + "\n" + g.dir))
	file := filepath.Join(cache, "slipway", fmt.Sprintf("goroot-%x", name[:8]))
	data, _ := os.ReadFile(file) // none yet, mostly
	if state, sum, ok := strings.Cut(strings.TrimSpace(string(data)), " "); ok && state == g.state {
		return sum, nil
	}
	sum, err := g.sum()
	if err == nil {
		_ = remember(file, g.state+" "+sum+"\n") // it only saves time
	}
	return sum, err
}

func remember(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	return atomicfile.WriteFile(file, []byte(text), 0o600)
}
