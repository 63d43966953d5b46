package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agnivade/levenshtein"
)

// A Check is one row of the table.
type Check struct {
	Group string
	Name  string
	Alone bool          // it disturbs others of its group, and runs after them
	Skips bool          // it may say that this machine does not have what it checks
	Limit time.Duration // where defaultLimit is too short
	run   func(context.Context, *env) error
}

// defaultLimit is how long a check may take: much longer than it does, for machines that have other things to do, too.
const defaultLimit = 3 * time.Minute

// All are the checks, group by group, in the order in which they run.
func All() []Check {
	return slices.Concat(apiChecks, schedulerChecks, controllerChecks, kubeletChecks, serviceChecks, metricsChecks)
}

// group gives checks the name of their group.
func group(name string, checks ...Check) []Check {
	for i := range checks {
		checks[i].Group = name
	}
	return checks
}

// Select finds the checks that are meant by names: of groups, of checks, or both as GROUP/CHECK. No names mean all.
func Select(names []string) ([]Check, error) { return selectFrom(All(), names) }

func selectFrom(all []Check, names []string) ([]Check, error) {
	if len(names) == 0 {
		return all, nil
	}
	chosen := map[int]bool{}
	for _, name := range names {
		found := false
		for i, c := range all {
			if slices.Contains(c.names(), name) {
				chosen[i], found = true, true
			}
		}
		if !found {
			return nil, unknown(all, name)
		}
	}
	var checks []Check
	for i, c := range all {
		if chosen[i] {
			checks = append(checks, c)
		}
	}
	return checks, nil
}

// names are those by which a check can be selected.
func (c Check) names() []string { return []string{c.Group, c.Name, c.Group + "/" + c.Name} }

// An UnknownError is the name of no check and no group.
type UnknownError struct {
	Name string
	Near string // what may have been meant, or empty
}

func (e UnknownError) Error() string {
	if e.Near != "" {
		return fmt.Sprintf("there is no check or group %q; did you mean %s?", e.Name, e.Near)
	}
	return fmt.Sprintf("there is no check or group %q", e.Name)
}

func unknown(all []Check, name string) UnknownError {
	best, near := max(3, len(name)/3+1), ""
	for _, c := range all {
		for _, candidate := range c.names() {
			if d := levenshtein.ComputeDistance(name, candidate); d < best && 2*d <= len(name) { // of a short word more mistakes make another one
				best, near = d, candidate
			}
		}
	}
	return UnknownError{name, near}
}

// A skip says why a check was not made.
type skip string

func (s skip) Error() string { return string(s) }
