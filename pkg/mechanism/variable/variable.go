// Package variable reads the values of environment variables. A value that means nothing is the request's fault, see package badrequest: a
// mistyped one must not have the effect of none. An empty variable counts as unset.
//
// What must never be in here: which variables there are, and what they are for.
package variable

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
)

// Bad returns the error for a value that means nothing. Want says which values do.
func Bad(name, value, want string) error {
	return badrequest.Mark(fmt.Errorf("%s=%q: want %s", name, value, want))
}

// A Switch is a variable that is on or off, by two values, whose case does not count.
type Switch struct {
	Name, On, Off string
	Default       bool // what it is if it is unset
}

// Read reads the switch. A value that means nothing is an error, with which the switch has its default.
func (s Switch) Read(getenv func(string) string) (bool, error) {
	switch value := getenv(s.Name); {
	case value == "":
		return s.Default, nil
	case strings.EqualFold(value, s.On):
		return true, nil
	case strings.EqualFold(value, s.Off):
		return false, nil
	default:
		return s.Default, Bad(s.Name, value, s.On+" or "+s.Off)
	}
}

// OneOf returns a variable's value if it is one of those that exist, or the default, "", if it is unset.
func OneOf(getenv func(string) string, name string, values ...string) (string, error) {
	value := getenv(name)
	if value != "" && !slices.Contains(values, value) {
		return "", Bad(name, value, suggest.Enumerate(values, "or"))
	}
	return value, nil
}

// Number returns a variable's value as a number of at least low and at most high, or low if it is unset.
func Number(getenv func(string) string, name string, low, high int) (int, error) {
	value := getenv(name)
	if value == "" {
		return low, nil
	}
	n, err := strconv.Atoi(value)
	if err == nil && low <= n && n <= high {
		return n, nil
	}
	want := fmt.Sprintf("a number from %d to %d", low, high)
	if high == math.MaxInt {
		want = fmt.Sprintf("a number, %d or more", low)
	}
	return low, Bad(name, value, want)
}
