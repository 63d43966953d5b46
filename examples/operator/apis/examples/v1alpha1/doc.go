// Package v1alpha1 is a version of the API group examples.slipway.build. Its markers say what generators make of it.
//
// +k8s:deepcopy-gen=package
// +k8s:register-gen=package
// +groupName=examples.slipway.build
package v1alpha1
