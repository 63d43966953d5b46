//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"slipway.build/pkg/mechanism/debian"
)

// otherClients compiles the programs of test/clients, once, and returns their folder.
var otherClients = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(workspace, "clients")
	packages := []string{"./bundle", "./findings", "./schema"}
	if soak {
		packages = append(packages, "github.com/anchore/syft/cmd/syft", "sigs.k8s.io/kind") // syft's compile takes minutes
	}
	args := append([]string{"build", "-o", dir + "/"}, packages...)
	return dir, madeBeside("the programs of test/clients", command("../clients", likeRelease, "go", args...))
})

func client(t *testing.T, program string) string {
	t.Helper()
	dir, err := otherClients()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, program)
}

// cosign returns the path of cosign. Debian has it since forky, as one static program; compiling it would take minutes.
func cosign(t *testing.T) string {
	t.Helper()
	need(t, "mmdebstrap", "mmdebstrap")
	path, err := debianCosign()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var debianCosign = sync.OnceValues(func() (string, error) {
	path := filepath.Join(workspace, "cosign")
	system := debian.System{
		Mirror:   os.Getenv("SLIPWAY_DEBIAN_MIRROR"),
		Suite:    "forky",
		Packages: []string{"cosign"},
		Options:  []string{"--variant=extract", `--aptopt=APT::Install-Recommends "false"`},
		Progress: func(string) {},
	}
	err := system.Pack(context.Background(), func(packed io.Reader) error {
		extract := exec.Command("tar", "-x", "--to-stdout", "./usr/bin/cosign")
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		extract.Stdin, extract.Stdout, extract.Stderr = packed, file, os.Stderr
		return errors.Join(extract.Run(), file.Close())
	})
	if err != nil {
		return "", fmt.Errorf("Debian's cosign: %w", err)
	}
	return path, nil
})
