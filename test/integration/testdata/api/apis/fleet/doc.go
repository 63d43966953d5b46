// Package fleet is an API group of a distribution: its internal types.
//
// +k8s:deepcopy-gen=package
// +groupName=fleet.acme.example
package fleet
