package console

import (
	"bytes"
	"strings"
	"testing"
)

func TestModeSuitsTheOutput(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mode Mode
		env  map[string]string
		want Mode
	}{
		"a pipe":                  {"", map[string]string{"TERM": "xterm"}, Plain},
		"auto":                    {Auto, map[string]string{"TERM": "xterm"}, Plain},
		"asked for":               {Terminal, map[string]string{"TERM": "xterm", "CI": "true"}, Terminal},
		"asked for on a dumb one": {Terminal, map[string]string{"TERM": "dumb"}, Plain},
		"plain is always plain":   {Plain, map[string]string{"TERM": "xterm"}, Plain},
		"JSON needs no terminal":  {JSON, nil, JSON},
	} {
		o := Options{Out: &bytes.Buffer{}, Mode: test.mode, Getenv: func(key string) string { return test.env[key] }}
		if got := o.withDefaults().Mode; got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestModeIsAFlag(t *testing.T) {
	t.Parallel()
	m := Auto
	if err := m.Set("json"); err != nil || m != JSON || m.String() != "json" {
		t.Errorf("Set(json) = %v, mode %s", err, m)
	}
	if err := m.Set("fancy"); err == nil || m != JSON {
		t.Errorf("Set(fancy) = %v, mode %s; want an error and no change", err, m)
	}
}

func TestSizeOfWhatIsNoTerminal(t *testing.T) {
	t.Parallel()
	if width, height := TerminalSize(&bytes.Buffer{}); width != 80 || height != 24 {
		t.Errorf("the size of a buffer is %dx%d", width, height)
	}
}

func TestWithoutArtifactsThereIsNoTable(t *testing.T) {
	t.Parallel()
	for name, newView := range views {
		s := newFixture()
		o := s.options()
		o.Artifacts = nil
		s.show(newView(o), release())
		if got := s.String(); strings.Contains(got, "sha256") || !strings.Contains(got, "4 done in 4m19s") {
			t.Errorf("%s: got\n%s", name, got)
		}
	}
}
