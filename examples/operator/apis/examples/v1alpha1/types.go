package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A Site is a web server in several replicas.
//
// +genclient
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.readyReplicas
// +kubebuilder:printcolumn:name=Replicas,type=integer,JSONPath=.spec.replicas
// +kubebuilder:printcolumn:name=Ready,type=integer,JSONPath=.status.readyReplicas
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SiteSpec   `json:"spec"`
	Status SiteStatus `json:"status,omitempty"`
}

// A SiteSpec says what a Site should be.
type SiteSpec struct {
	// image serves the site.
	//
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`

	// replicas is how many servers there are.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +optional
	Replicas int32 `json:"replicas"`
}

// A SiteStatus says what was seen of a Site.
type SiteStatus struct {
	// observedGeneration is the generation of the spec that the rest is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// readyReplicas is how many servers are ready.
	//
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// conditions has Ready: whether all servers are.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionReady is the type of the condition that says whether all servers are ready.
const ConditionReady = "Ready"

// A SiteList is a list of Sites.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Site `json:"items"`
}
