// Package v1alpha1 is the version of the fleet's API that clients see.
//
// +k8s:openapi-gen=true
// +k8s:deepcopy-gen=package
// +k8s:register-gen=package
// +k8s:conversion-gen=slipway.build/cmd/apis/fleet
// +k8s:defaulter-gen=TypeMeta
// +k8s:validation-gen=TypesWithField=TypeMeta
// +k8s:validation-gen-scheme-registry=k8s.io/apimachinery/pkg/runtime.Scheme
// +k8s:prerelease-lifecycle-gen=true
// +groupName=fleet.acme.example
package v1alpha1
