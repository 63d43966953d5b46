package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

func init() { localSchemeBuilder.Register(addDefaultingFuncs) }

func addDefaultingFuncs(s *runtime.Scheme) error { return RegisterDefaults(s) }

// SetDefaults_RolloutSpec lets one cluster change at a time.
func SetDefaults_RolloutSpec(s *RolloutSpec) {
	if s.MaxParallel == nil {
		one := int32(1)
		s.MaxParallel = &one
	}
}
