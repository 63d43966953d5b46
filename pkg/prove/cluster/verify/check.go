package verify

import (
	"slices"
	"time"

	"slipway.build/pkg/mechanism/suggest"
)

// A Check is one row of the table.
type Check struct {
	Group string
	Name  string
	Alone bool          // it disturbs others, and runs after them
	Long  bool          // it mostly waits, for a minute or so, and starts before the others
	Skips bool          // it may lack what it needs on this machine or in this cluster
	Needs []string      // names of the components that have to run
	Limit time.Duration // instead of defaultLimit; zero keeps that
	run   func(*env)
}

// defaultLimit is how long a check may take. Most take seconds; the rest is for machines that are busy.
const defaultLimit = 3 * time.Minute

// All returns the checks, group by group.
func All() []Check {
	return slices.Concat(componentChecks, apiChecks, schedulerChecks, controllerChecks, kubeletChecks, serviceChecks, metricsChecks)
}

// group sets the group of checks, and adds the components that all of them need. Every check needs the namespace's service
// account, and with it the API server and the controller manager.
func group(name string, needs []string, checks ...Check) []Check {
	for i := range checks {
		checks[i].Group = name
		checks[i].Needs = slices.Concat([]string{apiServer, controllerManager}, needs, checks[i].Needs)
	}
	return checks
}

// Select returns the checks with the given names: of groups, of checks, or GROUP/CHECK. No names mean all.
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

// WithComponents returns checks after those of the components that they need.
func WithComponents(checks []Check) []Check {
	wanted := map[string]bool{}
	for _, c := range checks {
		for _, name := range c.Needs {
			wanted[name] = true
		}
		if c.Group == components {
			wanted[c.Name] = true
		}
	}
	var all []Check
	for _, c := range componentChecks {
		if wanted[c.Name] {
			all = append(all, c)
		}
	}
	for _, c := range checks {
		if c.Group != components {
			all = append(all, c)
		}
	}
	return all
}

// names returns the names by which a check can be selected.
func (c Check) names() []string { return []string{c.Group, c.Name, c.Group + "/" + c.Name} }

// A skip is the error of a check that cannot decide anything here. It says what the check needs.
type skip string

func (s skip) Error() string { return string(s) }

// severalNodes skips a check that one node passes whatever the cluster does.
func (e *env) severalNodes(why string) {
	if len(e.nodes) < 2 {
		noError(skip("needs two nodes: " + why))
	}
}
