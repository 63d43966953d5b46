package needs

import (
	"fmt"
	"strings"
	"testing"
)

// A fake test remembers how it ended first: a real one would not come any further.
type fake struct {
	testing.TB
	ended string
}

func (f *fake) Helper()                           {}
func (f *fake) Fatalf(format string, args ...any) { f.end("failed: "+format, args...) }
func (f *fake) Skipf(format string, args ...any)  { f.end("skipped: "+format, args...) }

func (f *fake) end(format string, args ...any) {
	if f.ended == "" {
		f.ended = fmt.Sprintf(format, args...)
	}
}

func TestWhatIsMissingFailsInCIOnly(t *testing.T) {
	for ci, want := range map[string]string{"": "skipped: ", "1": "failed: "} {
		t.Setenv("SLIPWAY_CI", ci)
		f := &fake{}
		if Program(f, "no-such-program"); !strings.HasPrefix(f.ended, want) || !strings.Contains(f.ended, "no-such-program") {
			t.Errorf("SLIPWAY_CI=%s: %s", ci, f.ended)
		}
		f = &fake{}
		if path := Program(f, "go"); f.ended != "" || path == "" {
			t.Errorf("SLIPWAY_CI=%s: a program that is there: %s", ci, f.ended)
		}
	}
}
