package stamp

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var example = Stamp{
	Version:   "v1.36.3+slipway.20261120235300.0123456789ab.dirty",
	Commit:    "0123456789abcdef0123456789abcdef01234567",
	TreeState: "dirty",
	Major:     "1",
	Minor:     "36+",
	Date:      time.Date(2026, 11, 20, 23, 53, 0, 0, time.UTC),
}

func TestLDFlagsAreSortedAndComplete(t *testing.T) {
	t.Parallel()
	s := example
	s.Date = s.Date.In(time.FixedZone("east", 3600))
	want := strings.Join([]string{
		"-X k8s.io/client-go/pkg/version.buildDate=2026-11-20T23:53:00Z",
		"-X k8s.io/client-go/pkg/version.gitCommit=0123456789abcdef0123456789abcdef01234567",
		"-X k8s.io/client-go/pkg/version.gitMajor=1",
		"-X k8s.io/client-go/pkg/version.gitMinor=36+",
		"-X k8s.io/client-go/pkg/version.gitTreeState=dirty",
		"-X k8s.io/client-go/pkg/version.gitVersion=v1.36.3+slipway.20261120235300.0123456789ab.dirty",
		"-X k8s.io/component-base/version.buildDate=2026-11-20T23:53:00Z",
		"-X k8s.io/component-base/version.gitCommit=0123456789abcdef0123456789abcdef01234567",
		"-X k8s.io/component-base/version.gitMajor=1",
		"-X k8s.io/component-base/version.gitMinor=36+",
		"-X k8s.io/component-base/version.gitTreeState=dirty",
		"-X k8s.io/component-base/version.gitVersion=v1.36.3+slipway.20261120235300.0123456789ab.dirty",
	}, " ")
	if diff := cmp.Diff(want, s.LDFlags()); diff != "" {
		t.Error(diff)
	}
}

func TestImageTagHasNoPlus(t *testing.T) {
	t.Parallel()
	if got, want := example.ImageTag(), "v1.36.3_slipway.20261120235300.0123456789ab.dirty"; got != want {
		t.Errorf("ImageTag() = %s, want %s", got, want)
	}
}

func TestVersionFileRoundTrip(t *testing.T) {
	t.Parallel()
	const want = `KUBE_GIT_VERSION='v1.36.3+slipway.20261120235300.0123456789ab.dirty'
KUBE_GIT_COMMIT='0123456789abcdef0123456789abcdef01234567'
KUBE_GIT_TREE_STATE='dirty'
KUBE_GIT_MAJOR='1'
KUBE_GIT_MINOR='36+'
SOURCE_DATE_EPOCH='1795218780'
`
	data := Marshal(example)
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
	got, err := Unmarshal(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(example, got); diff != "" {
		t.Error(diff)
	}
}

func TestVersionFileErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	const head = "# a comment\n\nKUBE_GIT_VERSION='v1.36.3'\n"
	const rest = "KUBE_GIT_COMMIT='0123456'\nKUBE_GIT_TREE_STATE='clean'\n"
	tests := []struct{ name, file, want string }{
		{"no quotes", head + "KUBE_GIT_COMMIT=0123456\n", `line 4: "KUBE_GIT_COMMIT=0123456" is not of the form KEY='value'`},
		{"one quote", head + "KUBE_GIT_COMMIT='", "line 4: "},
		{"no equals sign", head + "nonsense\n", "line 4: "},
		{"carriage return", head + "KUBE_GIT_COMMIT='0123456'\r\n", "line 4: "},
		{"blank before", head + " KUBE_GIT_COMMIT='0123456'\n", `line 4: " KUBE_GIT_COMMIT`},
		{"two values", head + "KUBE_GIT_COMMIT='0123456' 'x'\n", "line 4: KUBE_GIT_COMMIT: "},
		{"empty value", head + "KUBE_GIT_COMMIT=''\n", "line 4: KUBE_GIT_COMMIT is empty"},
		{"malformed value", head + "KUBE_GIT_COMMIT='xyz'\n", "line 4: KUBE_GIT_COMMIT: \"xyz\" is not"},
		{"malformed date", head + rest + "SOURCE_DATE_EPOCH='-1'\n", "line 6: SOURCE_DATE_EPOCH: "},
		{"unknown key", head + "KUBE_GIT_MOOD='good'\n", "line 4: \"KUBE_GIT_MOOD\" is not a key"},
		{"twice", head + head, "line 6: KUBE_GIT_VERSION is already set in line 3"},
		{"no version", rest, "KUBE_GIT_VERSION is missing"},
		{"no commit", head, "KUBE_GIT_COMMIT is missing"},
		{"nothing", "", "line 1: KUBE_GIT_VERSION is missing"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, err := Unmarshal([]byte(test.file))
			if err == nil {
				t.Fatalf("no error, but %+v", s)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("err = %v, want %s", err, test.want)
			}
		})
	}
}

func TestMajorAndMinorFollowFromTheVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string][2]string{
		"v1.36.3":          {"1", "36"},
		"v1.36.3+acme.1":   {"1", "36"},
		"v1.37.0-rc.0":     {"1", "37+"},
		"v10.100.0-rc.0+x": {"10", "100+"},
	} {
		if major, minor := majorMinor(version); [2]string{major, minor} != want {
			t.Errorf("majorMinor(%s) = %s, %s, want %v", version, major, minor, want)
		}
	}
}
