package verify

import (
	"context"
	"slices"
	"time"

	"slipway.build/pkg/mechanism/suggest"
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
	var known []string
	for _, c := range all {
		known = append(known, c.names()...)
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
			return nil, suggest.Unknown("check or group", name, known)
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

// A skip says why a check was not made.
type skip string

func (s skip) Error() string { return string(s) }
