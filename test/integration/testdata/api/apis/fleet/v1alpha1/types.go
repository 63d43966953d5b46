package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:prerelease-lifecycle-gen:introduced=1.37

// A Rollout brings a version to the clusters of a fleet.
type Rollout struct {
	metav1.TypeMeta `json:",inline"`
	// +k8s:opaqueType
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   RolloutSpec   `json:"spec"`
	Status RolloutStatus `json:"status,omitempty"`
}

// A RolloutSpec says what to bring where.
type RolloutSpec struct {
	// version is a release's name: v1.37.1.
	// +k8s:required
	Version string `json:"version"`

	// clusters are the names of clusters.
	// +listType=set
	// +k8s:optional
	// +k8s:maxItems=100
	Clusters []string `json:"clusters,omitempty"`

	// maxParallel is the number of clusters that change at the same time.
	// +k8s:optional
	MaxParallel *int32 `json:"maxParallel,omitempty"`

	// tolerations are those of the agents that do the work.
	// +listType=atomic
	// +k8s:optional
	// +k8s:eachVal=+k8s:opaqueType
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// A RolloutStatus says how far it is.
type RolloutStatus struct {
	// done says when clusters got the version.
	// +k8s:optional
	Done map[string]metav1.Time `json:"done,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:prerelease-lifecycle-gen:introduced=1.37

// A RolloutList is a list of Rollouts.
type RolloutList struct {
	metav1.TypeMeta `json:",inline"`
	// +k8s:opaqueType
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Rollout `json:"items"`
}
