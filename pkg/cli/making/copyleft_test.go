package making

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/debian"
)

func TestSourcesArePackedOnceWithTheirSums(t *testing.T) {
	t.Parallel()
	bash := debian.SourcePackage{Name: "bash", Version: "1:5-2", Packages: []string{"bash_5-2_amd64"}, Files: []debian.SourceFile{
		{Path: "pool/b/bash_5-2.dsc", SHA256: "aa", File: filepath.Join("cache", "aa")},
	}}
	arm := bash
	arm.Packages = []string{"bash_5-2_arm64"}
	got := sourceEntries([]debian.SourcePackage{bash, arm})
	want := []archive.Entry{
		{Name: "kubernetes-debian-sources/SHA256SUMS", Mode: 0o644, Data: []byte("aa  bash_1%3a5-2/bash_5-2.dsc\n")},
		{Name: "kubernetes-debian-sources/bash_1%3a5-2/bash_5-2.dsc", Mode: 0o644, Path: filepath.Join("cache", "aa"), Sum: "aa"},
		{Name: "kubernetes-debian-sources/packages.txt", Mode: 0o644,
			Data: []byte("bash_1%3a5-2 bash_5-2_amd64\nbash_1%3a5-2 bash_5-2_arm64\n")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCopyleftRefusesFlagsOfOtherFiles(t *testing.T) {
	t.Parallel()
	err := checkCopyleftFlags(func(flag string) bool { return flag == "host" })
	if !badrequest.Is(err) || !strings.Contains(err.Error(), "--host") {
		t.Error(err)
	}
	if err := checkCopyleftFlags(func(flag string) bool { return flag == "platform" || flag == "list" }); err != nil {
		t.Error(err)
	}
}
