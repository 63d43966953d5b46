package stamp

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/needs"
)

// inOrder are versions as people give them. Package managers compare letters and dots in another way than Compare, which shows in names
// such as acme2 alone.
var inOrder = []string{
	"v1.36.9+acme.1", "v1.37.0-alpha.2", "v1.37.0-rc.1", "v1.37.0-rc.1+acme.1", "v1.37.0-rc.10", "v1.37.0", "v1.37.0+acme.1-rc.1",
	"v1.37.0+acme.1",
	"v1.37.0+acme.1.dirty", "v1.37.0+acme.2-rc.1", "v1.37.0+acme.2", "v1.37.0+acme.10", "v1.37.0+acme.10.1",
	"v1.37.0+slipway.20261120235300.0123456789ab", "v1.37.0+slipway.20261120235300.0123456789ab.dirty",
	"v1.37.0+slipway.20261120235301.000000000000", "v1.37.1", "v1.37.10+my-acme-1-rc1", "v1.37.10+my-acme-1",
}

func TestVersionsOfPackages(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.37.2": "1.37.2", "v1.37.0-rc.1+acme.1": "1.37.0~rc.1+acme.1", "v1.37.2+acme.2-rc.1": "1.37.2+acme.2~rc.1",
		"v1.37.2+my-acme-1": "1.37.2+my.acme.1",
	} {
		if got := ForPackages(version); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
	for i := 1; i < len(inOrder); i++ {
		if Compare(inOrder[i-1], inOrder[i]) >= 0 {
			t.Errorf("%s is not older than %s", inOrder[i-1], inOrder[i])
		}
	}
}

func TestDpkgAndRPMSortVersionsAsSlipway(t *testing.T) {
	t.Parallel()
	for name, older := range map[string]func(t *testing.T, program, a, b string) bool{
		"dpkg": func(t *testing.T, program, a, b string) bool {
			return exec.CommandContext(t.Context(), program, "--compare-versions", a+"-1", "lt", b+"-1").Run() == nil
		},
		"rpm": func(t *testing.T, program, a, b string) bool {
			eval := fmt.Sprintf("%%{lua: print(rpm.vercmp(%q, %q))}", a, b)
			out, err := exec.CommandContext(t.Context(), program, "--eval", eval).Output()
			return err == nil && strings.TrimSpace(string(out)) == "-1"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := needs.Program(t, name)
			for i := 1; i < len(inOrder); i++ {
				if a, b := ForPackages(inOrder[i-1]), ForPackages(inOrder[i]); !older(t, program, a, b) {
					t.Errorf("%s is not older than %s", a, b)
				}
			}
		})
	}
}
