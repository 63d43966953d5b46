package verify

import (
	"path/filepath"
	"testing"
)

func TestLimitsOfBothVersionsOfControlGroups(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"33554432\n": "33554432", "max\n": "max", // memory.max
		"20000 100000\n": "20000", "max 100000\n": "max", // cpu.max
		"-1\n":                  "max", // cpu.cfs_quota_us
		"9223372036854771712\n": "max", // memory.limit_in_bytes
	} {
		file := filepath.Join(t.TempDir(), "limit")
		groupFile(file).write(text)
		if got := groupFile(file).limit(); got != want {
			t.Errorf("of %q the limit is %s, want %s", text, got, want)
		}
	}
}
