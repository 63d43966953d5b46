package published

import (
	"testing"

	gomod "golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"slipway.build/pkg/mechanism/badrequest"
)

func TestVersionsAreBetweenThoseOfUpstream(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ upstream, release, want, later string }{
		{"v0.37.1", "acme.1", "v0.37.2-0.acme.1", "v0.37.2-alpha.0"},
		{"v1.37.1", "acme.1", "v1.37.2-0.acme.1", "v1.37.2"},
		{"v0.37.9", "acme.2.0", "v0.37.10-0.acme.2.0", "v0.37.10"},
		{"v0.38.0-rc.1", "acme.1", "v0.38.0-rc.1.0.acme.1", "v0.38.0-rc.2"},
	} {
		got := next(c.upstream, c.release)
		if got != c.want || semver.Compare(c.upstream, got) >= 0 || semver.Compare(got, c.later) >= 0 || gomod.IsPseudoVersion(got) ||
			gomod.Check("k8s.io/api", got) != nil {
			t.Errorf("after %s: %s, want %s below %s", c.upstream, got, c.want, c.later)
		}
	}
	if semver.Compare(next("v0.37.1", "acme.9"), next("v0.37.1", "acme.10")) >= 0 {
		t.Error("the tenth release comes before the ninth")
	}
}

func TestReleasesThatGoWouldNotOrderAreRefused(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.37.1+acme.1": "acme.1", "v1.37.1+rke2.1": "rke2.1", "v1.37.1+acme-eu.2026.11": "acme-eu.2026.11", "v1.38.0-rc.1+acme.0": "acme.0",
	} {
		if got, err := Release(version); err != nil || got != want {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
	for _, version := range []string{
		"v1.37.1", "v1.37.1+acme", "v1.37.1+acme1", "v1.37.1+acme.01", "v1.37.1+1", "v1.37.1+acme.1-rc.1", "v1.37.1+acme.1.dirty",
		"v1.37.1+slipway.20261120235300.0123456789ab",
	} {
		if got, err := Release(version); !badrequest.Is(err) {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
}
