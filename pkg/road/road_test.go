package road

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBuildFlags(t *testing.T) {
	t.Parallel()
	const always = "-buildvcs=false\n-mod=readonly\n"
	tests := []struct {
		name    string
		options Options
		want    string // a flag on each line
	}{
		{"a release", Options{}, always + "-trimpath\n-tags=selinux,grpcnotrace\n-ldflags=-s -w -X a.b=c"},
		{"a debug build keeps symbols, paths and tracing", Options{Debug: true},
			always + "-gcflags=all=-N -l\n-tags=selinux\n-ldflags=-X a.b=c"},
		{"GOLDFLAGS stands instead of -s -w", Options{LDFlags: "-w -linkmode=internal"},
			always + "-trimpath\n-tags=selinux,grpcnotrace\n-ldflags=-w -linkmode=internal -X a.b=c"},
		{"GOLDFLAGS in a debug build", Options{Debug: true, LDFlags: "-compressdwarf=false"},
			always + "-gcflags=all=-N -l\n-tags=selinux\n-ldflags=-compressdwarf=false -X a.b=c"},
		{"tags in GOFLAGS are added", Options{GoFlags: "-v -tags=acme,fips -p=2"},
			always + "-trimpath\n-tags=selinux,grpcnotrace,acme,fips\n-ldflags=-s -w -X a.b=c"},
		{"two hyphens are one", Options{GoFlags: "--tags=acme"},
			always + "-trimpath\n-tags=selinux,grpcnotrace,acme\n-ldflags=-s -w -X a.b=c"},
		{"of several -tags the last counts, as in the go command", Options{GoFlags: "-tags=one -tags=two"},
			always + "-trimpath\n-tags=selinux,grpcnotrace,two\n-ldflags=-s -w -X a.b=c"},
		{"other flags of GOFLAGS are left to the go command", Options{GoFlags: "-x -ldflags=-w"},
			always + "-trimpath\n-tags=selinux,grpcnotrace\n-ldflags=-s -w -X a.b=c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := Compilation{Tags: []string{"selinux", "grpcnotrace"}, LDFlags: "-X a.b=c", Options: tt.options}
			if diff := cmp.Diff(tt.want, strings.Join(c.BuildFlags(), "\n")); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"selinux", "grpcnotrace"}, c.Tags); diff != "" {
				t.Errorf("the compilation's own tags changed:\n%s", diff)
			}
		})
	}
}

func TestBuildFlagsWithoutTagsOrStamp(t *testing.T) {
	t.Parallel()
	want := []string{"-buildvcs=false", "-mod=readonly", "-trimpath", "-ldflags=-s -w"}
	if diff := cmp.Diff(want, Compilation{}.BuildFlags()); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
}
