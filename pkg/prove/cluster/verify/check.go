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
	Alone bool          // it disturbs other checks, and runs after them
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
	return slices.Concat(componentChecks, apiChecks, schedulerChecks, controllerChecks, kubeletChecks, serviceChecks, storageChecks,
		metricsChecks, scaleChecks)
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

// Select returns those of the checks with the given names: of groups, of checks, or GROUP/CHECK. No names mean all.
func Select(all []Check, names []string) ([]Check, error) {
	var known []string
	for _, c := range all {
		known = append(known, c.names()...)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, suggest.Unknown("check or group", name, known)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(c Check) bool {
		isNamed := func(name string) bool { return slices.Contains(names, name) }
		return len(names) > 0 && !slices.ContainsFunc(c.names(), isNamed)
	}), nil
}

// WithComponents returns checks after those of the components that they need.
func WithComponents(checks []Check) []Check {
	needed := map[string]bool{}
	for _, c := range checks {
		for _, name := range c.Needs {
			needed[name] = true
		}
		if c.Group == components {
			needed[c.Name] = true
		}
	}
	first := slices.DeleteFunc(slices.Clone(componentChecks), func(c Check) bool { return !needed[c.Name] })
	return append(first, slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return c.Group == components })...)
}

// String returns the name of a check with that of its group.
func (c Check) String() string { return c.Group + "/" + c.Name }

// names returns the names by which a check can be selected.
func (c Check) names() []string { return []string{c.Group, c.Name, c.String()} }
