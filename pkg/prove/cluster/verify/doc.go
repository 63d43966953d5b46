// Package verify checks that a cluster works, by a table of checks that each use the cluster as a user would.
//
// A check is a function that acts through the release's own kubectl, step by step. As in a test, the first step that fails ends
// the check, and its error says what was wrong. Each check has a namespace of its own, a time limit, and a Result in the Report,
// which the table, JSON and JUnit's XML show. Checks run in parallel, except those that are Alone because they disturb others.
//
// The checks of the group "components" come first: they find out whether the programs of the cluster run. A check that needs
// a program which does not run fails at once and names it, instead of waiting until its own time is over.
//
// A check passes only if it has looked: where something must be refused, the check requires the refusal, and the integration
// tests break what each check is about and see it fail. A check that cannot fail on the cluster at hand, because that has one
// node or a kernel without the feature, is skipped, and its message says what it needs.
//
// # What must never be in here
//
// How clusters are created and removed, and a client of Kubernetes' API: users have kubectl.
package verify
