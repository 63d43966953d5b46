package kubecross

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestContextHoldsDefinitionPackagesAndGo(t *testing.T) {
	t.Parallel()
	i := definition(t)
	f, err := readFolder(i.Dir)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	goroot := map[string]string{}
	for name, file := range map[string]string{
		"VERSION": "VERSION", "bin/go": "bin/go", "pkg/tool/linux_amd64/link": "pkg/tool/linux_amd64/link", "src/go.mod": "src/_go.mod",
	} {
		goroot[name] = filepath.Join(dir, filepath.FromSlash(file))
		write(t, goroot[name], file, 0o600)
	}
	var b bytes.Buffer
	if err := (buildContext{folder: f, packages: []string{"git", "make"}, goroot: goroot}).write(&b); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 0 {
			t.Errorf("%s belongs to %d:%d and is of %v", h.Name, h.Uid, h.Gid, h.ModTime)
		}
		got = append(got, fmt.Sprintf("%o %s %q", h.Mode, h.Name, data))
	}
	want := []string{
		`644 Dockerfile "FROM scratch\n"`, `755 go/ ""`, `644 go/VERSION "VERSION"`,
		`755 go/bin/ ""`, `755 go/bin/go "bin/go"`, `755 go/pkg/ ""`, `755 go/pkg/tool/ ""`, `755 go/pkg/tool/linux_amd64/ ""`,
		`755 go/pkg/tool/linux_amd64/link "pkg/tool/linux_amd64/link"`, `755 go/src/ ""`, `644 go/src/go.mod "src/_go.mod"`,
		`644 packages "git\nmake\n"`, `644 packages.txt "git\n"`, `755 rootfs/ ""`, `755 rootfs/bin/ ""`,
		`755 rootfs/bin/attended "#!/bin/sh\n"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("context (-want +got):\n%s", diff)
	}
}

func TestContextWithoutOneOfGosFilesIsAnError(t *testing.T) {
	t.Parallel()
	missing := map[string]string{"bin/go": filepath.Join(t.TempDir(), "go")}
	if err := (buildContext{goroot: missing}).write(io.Discard); err == nil || !strings.Contains(err.Error(), missing["bin/go"]) {
		t.Errorf("error %v", err)
	}
}
