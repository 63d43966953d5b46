package platform

import (
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/suggest"
)

func TestSpellings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, dash, exe string }{
		{"linux/amd64", "linux-amd64", "kubectl"},
		{"windows/arm64", "windows-arm64", "kubectl.exe"},
		{"darwin/arm64", "darwin-arm64", "kubectl"},
	} {
		p, err := Parse(tt.in)
		if err != nil {
			t.Error(err)
			continue
		}
		if p.String() != tt.in || p.Dash() != tt.dash || p.Exe("kubectl") != tt.exe {
			t.Errorf("%s: got %s, %s, %s", tt.in, p, p.Dash(), p.Exe("kubectl"))
		}
	}
}

func TestPlatformThatGoCannotBuildIsUnknown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"linux/amd46", "unknown platform \"linux/amd46\"; did you mean linux/amd64?"},
		{"linux-amd64", "unknown platform \"linux-amd64\"; did you mean linux/amd64?"},
		{"amd64/linux", "unknown platform \"amd64/linux\""},
		{"linux/amd64/v2", "unknown platform \"linux/amd64/v2\"; did you mean linux/amd64?"},
		{"linux", "unknown platform \"linux\"; did you mean linux/386, linux/amd64 or linux/arm?"},
		{"", "unknown platform \"\""},
	} {
		_, err := Parse(tt.in)
		var unknown *suggest.UnknownError
		if !errors.As(err, &unknown) || err.Error() != tt.want {
			t.Errorf("%q: got %v, want %s", tt.in, err, tt.want)
		}
	}
}

func TestPlatformIsTextInJSON(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(map[Platform]Platform{{"linux", "arm"}: {"windows", "386"}})
	if err != nil || string(data) != `{"linux/arm":"windows/386"}` {
		t.Errorf("got %s, %v", data, err)
	}
	var p Platform
	if err := json.Unmarshal([]byte(`"linux/s390"`), &p); err == nil {
		t.Errorf("got %v for a platform that doesn't exist, want an error", p)
	}
}

func TestGoBuildsForEveryKnownPlatform(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "tool", "dist", "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	fromGo := strings.Fields(string(out))
	for _, p := range All() {
		if !slices.Contains(fromGo, p.String()) {
			t.Errorf("go tool dist list doesn't have %s", p)
		}
	}
}
