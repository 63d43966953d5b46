package stamp

import (
	"strings"
	"testing"

	"slipway.build/pkg/tree/worktree/gittest"
)

func TestOneOrderOfVersions(t *testing.T) {
	t.Parallel()
	order := []string{
		"v1.36.9+acme.1", "v1.37.0-rc.1", "v1.37.0", "v1.37.0+1", "v1.37.0+acme", "v1.37.0+acme.1-alpha.1",
		"v1.37.0+acme.1-rc1", "v1.37.0+acme.1-rc2",
		"v1.37.0+acme.1-rc10", "v1.37.0+acme.1", "v1.37.0+acme.1.dirty", "v1.37.0+acme.1-hotfix", "v1.37.0+acme.2-rc.1", "v1.37.0+acme.2",
		"v1.37.0+acme.10-rc.1",
		"v1.37.0+acme.10", "v1.37.0+acme.10.1", "v1.37.0+acme.99999999999999999999", "v1.37.0+acme.x", "v1.37.0+acme2", "v1.37.0+acme10",
		"v1.37.0+my-acme-1-rc1", "v1.37.0+my-acme-1", "v1.37.0+slipway.20261120235300.ffffffffffff",
		"v1.37.0+slipway.20261120235301.000000000000", "v1.37.1",
	}
	for i, a := range order {
		for j, b := range order {
			if got := Compare(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s and %s: %d", a, b, got)
			}
		}
	}
}

func TestCandidatesThatWouldComeAfterTheirReleaseAreRefused(t *testing.T) {
	t.Parallel()
	r := repository(t)
	for version, right := range map[string]string{
		"v1.36.3+acme.1.rc.1": "v1.36.3+acme.1-rc.1",
		"v1.36.3+acme.1.rc1":  "v1.36.3+acme.1-rc1",
		"v1.36.3+acme-rc.1":   "v1.36.3+acme.1-rc.1",
		"v1.36.3+rc.1":        "v1.36.3+acme.1-rc.1",
		"v1.36.3-rc.1":        "v1.36.3+acme.1-rc.1",
		"v1.36.3-acme.1":      "v1.36.3+acme.1",
		"v1.36.3+acme.beta2":  "v1.36.3+acme.1-beta2",
	} {
		for _, env := range []string{version, ""} {
			if env == "" {
				r.Git("tag", version)
			}
			_, err := Read(t.Context(), Request{Root: r.Dir, Base: base, Env: r.Env("KUBE_GIT_VERSION", env)})
			if err == nil || !strings.Contains(err.Error(), right) {
				t.Errorf("%s: %v, want %s", version, err, right)
			}
			if env == "" {
				r.Git("tag", "-d", version)
			}
		}
		if _, err := Read(t.Context(), Request{Root: r.Dir, Base: base, Env: r.Env("KUBE_GIT_VERSION", right)}); err != nil {
			t.Errorf("the right spelling %s: %v", right, err)
		}
	}
	for _, version := range []string{"v1.36.3+parcel.1", "v1.36.3+acme.rcs", "v1.36.3+prerelease", "v1.36.3+alphabet.2"} {
		if err := CheckCandidate(version); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestNewestTagWins(t *testing.T) {
	t.Parallel()
	r := repository(t)
	for _, tag := range []string{"v1.36.3+acme.1", "v1.36.3+acme.1-rc.1", "v1.36.3+acme.9", "v1.36.3+acme.10", "v1.36.3+acme.10-rc.2"} {
		r.Git("tag", tag)
	}
	if s := read(t, r); s.Version != "v1.36.3+acme.10" {
		t.Errorf("version %s", s.Version)
	}
}

func TestTagsThatCannotBeVersionsOfTheTreeAreRefused(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{
		"v1.36.2+acme.1":      "a version of Kubernetes v1.36.2, and the tree is of v1.36.3",
		"v1.36.30+acme.1":     "a version of Kubernetes v1.36.30",
		"v1.36.3-acme.1":      "a pre-release comes before its release",
		"v1.36.4-acme.1":      "a pre-release comes before its release",
		"v1.36.3":             "",
		"v1.36.2":             "",
		"v0.3.0-rc.1":         "",
		"my-tag+acme":         "",
		"release/v1.36.2+x.1": "",
	} {
		r := gittest.New(t)
		r.Write("a.go", "package a\n")
		r.Commit()
		r.Git("tag", tag)
		r.Git("tag", "v1.36.3+acme.1")
		s, err := Read(t.Context(), Request{Root: r.Dir, Base: base, Env: r.Env()})
		switch {
		case want == "" && (err != nil || s.Version != "v1.36.3+acme.1"):
			t.Errorf("%s: %s, %v", tag, s.Version, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), "tag "+tag) || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", tag, err, want)
		}
		if want == "" {
			continue
		}
		if s, err := Read(t.Context(), Request{Root: r.Dir, Base: base, Env: r.Env("KUBE_GIT_VERSION", "v1.36.3+acme.2")}); err != nil ||
			s.Version != "v1.36.3+acme.2" {
			t.Errorf("%s, with a version that is named: %s, %v", tag, s.Version, err)
		}
	}
}
