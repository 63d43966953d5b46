// Package verify looks whether a cluster works: a table of checks of what a cluster is for, each run for real.
//
// A check is a function that does what a user would do, with the release's own kubectl, and fails with an error that says
// what was not as it should be. Each has a namespace of its own, a limit of time, and a row in the Report, of which table,
// JSON and JUnit are views. Checks of a group run side by side, but for those that are Alone because they disturb others.
//
// A check does not trust what it has not seen fail: where something must be refused, it has it refused, and the integration
// tests break what each one checks and see its row turn red.
//
// # What must never be in here
//
// How clusters are made and removed, and a client of Kubernetes' API: users have kubectl.
package verify
