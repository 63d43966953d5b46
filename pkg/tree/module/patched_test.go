package module

import "testing"

func TestPatchedVersionsStandForOthers(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.37.1": "v1.37.1",
		"v1.37.1-patched.p6f9619ff8b86.cd011c8e1f7ac":             "v1.37.1",
		"v2.0.0-patched.p6f9619ff8b86.cd011c8e1f7ac+incompatible": "v2.0.0+incompatible",
		"v0.0.0-20260101000000-abcdefabcdef-patched.p1.c2":        "v0.0.0-20260101000000-abcdefabcdef",
		"v1.37.1-patched.pzz.c1":                                  "v1.37.1-patched.pzz.c1",
	} {
		if got, patched := Unpatched(version); got != want || patched != (got != version) {
			t.Errorf("%s stands for %s (%t), want %s", version, got, patched, want)
		}
	}
}
