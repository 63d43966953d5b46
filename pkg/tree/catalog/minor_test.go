package catalog

import "testing"

func TestOnlyMinorsOfTheTableAreSupported(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1.36.0", "v1.36.12", "v1.37.0-rc.1"} {
		if err := CheckKubernetes(version); err != nil {
			t.Error(err)
		}
	}
	for _, version := range []string{"v1.34.9", "v1.38.0", "v1.3.7", "v2.36.0", "1.36.0"} {
		want := "Kubernetes " + version + ": this version of slipway makes releases of 1.35, 1.36, 1.37"
		if err := CheckKubernetes(version); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	c, err := Load("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckKubernetes(c.Kubernetes); err != nil {
		t.Errorf("this tree: %v", err)
	}
}
