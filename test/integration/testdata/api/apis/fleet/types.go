package fleet

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// A Rollout brings a version to the clusters of a fleet.
type Rollout struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   RolloutSpec
	Status RolloutStatus
}

// A RolloutSpec says what to bring where.
type RolloutSpec struct {
	Version     string
	Clusters    []string
	MaxParallel *int32
	Tolerations []corev1.Toleration
}

// A RolloutStatus says how far it is.
type RolloutStatus struct {
	Done map[string]metav1.Time
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// A RolloutList is a list of Rollouts.
type RolloutList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []Rollout
}
