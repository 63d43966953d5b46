package cluster

import (
	"strings"
	"testing"
)

func TestSkewThatKubernetesForbidsIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, refused string }{
		{"v1.37.1+a", "v1.37.2+a", ""},
		{"v1.37.2", "v1.37.1", ""},
		{"v1.37.1+a", "v1.37.1+b", ""},
		{"v1.36.9", "v1.37.0", ""},
		{"v1.9.0", "v1.10.0", ""},
		{"v1.37.1+a", "v1.37.1+a", "same version"},
		{"v1.37.1", "v1.36.9", "does not go back"},
		{"v1.35.1", "v1.37.1", "v1.36 comes first"},
		{"v1.37.1", "v2.0.0", "major"},
		{"v1.37.1", "latest", "not versions"},
		{"", "v1.37.1", "not versions"},
	} {
		err := checkSkew(c.from, c.to)
		if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("from %s to %s: %v", c.from, c.to, err)
		}
	}
}

func TestStateAllowsUpgrades(t *testing.T) {
	t.Parallel()
	const own, begun = "v1.37.1", "v1.37.3"
	for name, c := range map[string]struct {
		underWay     bool
		sum, version string
		refused      bool
	}{
		"a patch":                       {false, "next", "v1.37.2", false},
		"two minor versions":            {false, "next", "v1.39.0", true},
		"the one that is under way":     {true, "begun", begun, false},
		"back to the cluster's own":     {true, "own", own, false},
		"a third patch":                 {true, "next", "v1.37.4", false},
		"a minor version ahead of both": {true, "next", "v1.38.0", false},
	} {
		s := &State{Version: own, Release: "own"}
		if c.underWay {
			s.Upgrade = &Target{Version: begun, Release: "begun"}
		}
		if err := s.allows(c.sum, c.version); (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Kubelets may already be a minor version ahead of the release that the state names.
	s := &State{Version: own, Release: "own", Upgrade: &Target{Version: "v1.38.0", Release: "begun"}}
	if err := s.allows("own", own); err == nil {
		t.Error("an upgrade to the next minor version can be turned back")
	}
	if err := s.allows("next", "v1.39.0"); err != nil {
		t.Error(err)
	}
}
