package variable_test

import (
	"math"
	"testing"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/variable"
)

func TestValuesThatMeanNothingAreRefused(t *testing.T) {
	t.Parallel()
	on := variable.Switch{Name: "V", On: "y", Off: "n", Default: true}
	for _, tt := range []struct {
		value string
		read  func(getenv func(string) string) (any, error)
		want  any
		err   string
	}{
		{"", func(getenv func(string) string) (any, error) { return on.Read(getenv) }, true, ""},
		{"n", func(getenv func(string) string) (any, error) { return on.Read(getenv) }, false, ""},
		{"Y", func(getenv func(string) string) (any, error) { return on.Read(getenv) }, true, ""},
		{"no", func(getenv func(string) string) (any, error) { return on.Read(getenv) }, true, `V="no": want y or n`},
		{" ", func(getenv func(string) string) (any, error) { return on.Read(getenv) }, true, `V=" ": want y or n`},
		{"", func(getenv func(string) string) (any, error) { return variable.OneOf(getenv, "V", "a", "b", "c") }, "", ""},
		{"b", func(getenv func(string) string) (any, error) { return variable.OneOf(getenv, "V", "a", "b", "c") }, "b", ""},
		{"B", func(getenv func(string) string) (any, error) { return variable.OneOf(getenv, "V", "a", "b", "c") }, "", `V="B": want a, b or c`},
		{"", func(getenv func(string) string) (any, error) { return variable.Number(getenv, "V", 1, 9) }, 1, ""},
		{"9", func(getenv func(string) string) (any, error) { return variable.Number(getenv, "V", 1, 9) }, 9, ""},
		{"10", func(getenv func(string) string) (any, error) { return variable.Number(getenv, "V", 1, 9) }, 1,
			`V="10": want a number from 1 to 9`},
		{"-1", func(getenv func(string) string) (any, error) { return variable.Number(getenv, "V", 0, math.MaxInt) }, 0,
			`V="-1": want a number, 0 or more`},
		{"1x", func(getenv func(string) string) (any, error) { return variable.Number(getenv, "V", 0, math.MaxInt) }, 0,
			`V="1x": want a number, 0 or more`},
	} {
		got, err := tt.read(func(string) string { return tt.value })
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != tt.want || text != tt.err || badrequest.Is(err) != (tt.err != "") {
			t.Errorf("%q: got %v, %v, want %v, %s", tt.value, got, err, tt.want, tt.err)
		}
	}
}
