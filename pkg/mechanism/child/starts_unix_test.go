//go:build unix

package child_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"slipway.build/pkg/mechanism/child/childtest"
)

// Without WithoutStarts, about one in a thousand of these programs is refused, "text file busy".
func TestWrittenProgramsCanBeRunAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for j := range 50 {
				file := filepath.Join(dir, fmt.Sprintf("%d-%d", i, j))
				childtest.Script(t, file, "#!/bin/sh\n")
				if err := exec.Command(file).Run(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
}
