package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/retry"
)

// The typed client has a method for each resource and verb, and Go types for objects. It is the first choice for what Kubernetes itself
// serves; generators make one for other types, see the operator.
func (e *example) typed(ctx context.Context) error {
	configMaps := e.client.CoreV1().ConfigMaps(e.namespace)
	for i, which := range []string{"first", "second"} {
		created, err := configMaps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: e.name + "-" + which, Labels: map[string]string{"example": e.name}},
			Data:       map[string]string{"color": "blue"},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		e.versions[i] = created.ResourceVersion
	}

	// An update holds the version of the object that it changes. If somebody else was faster, it is refused as a conflict: read
	// the object again, and change that.
	changed := metav1.ObjectMeta{}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		second, err := configMaps.Get(ctx, e.name+"-second", metav1.GetOptions{})
		if err != nil {
			return err
		}
		second.Data["color"] = "red"
		second, err = configMaps.Update(ctx, second, metav1.UpdateOptions{})
		if err == nil {
			changed = second.ObjectMeta
		}
		return err
	})
	if err != nil {
		return err
	}
	fmt.Printf("typed: updated %s\n", changed.Name)
	return nil
}

// The REST client is what the others are made of: it knows how to authenticate, to encode and to wait, and nothing of resources. Here it
// asks for protobuf, which is smaller and faster to decode than JSON. Only Kubernetes' own types have it.
func (e *example) rest(ctx context.Context) error {
	config := rest.CopyConfig(e.config)
	config.APIPath = "/api" // the core group; "/apis" for all others
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return err
	}
	var contentType string
	var first corev1.ConfigMap
	err = client.Get().Namespace(e.namespace).Resource("configmaps").Name(e.name + "-first").Do(ctx).ContentType(&contentType).Into(&first)
	if err != nil {
		return err
	}
	fmt.Printf("REST: %s is %s, as %s\n", first.Name, first.Data["color"], contentType)
	return nil
}

// The discovery client lists what a server serves. A program asks it before it uses what not every cluster has.
func (e *example) discovery(context.Context) error {
	client, err := discovery.NewDiscoveryClientForConfig(e.config)
	if err != nil {
		return err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return err
	}
	// Groups of aggregated API servers that do not answer are an error, and the rest is in the result nevertheless.
	lists, err := client.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return err
	}
	resources := 0
	for _, l := range lists {
		resources += len(l.APIResources)
	}
	fmt.Printf("discovery: %s serves %d resources\n", version.GitVersion, resources)
	return nil
}

// The dynamic client works with any resource, also with those that the program was not compiled for. Objects are maps. Discovery says which
// resource objects of a kind are.
func (e *example) dynamic(ctx context.Context) error {
	client, err := dynamic.NewForConfig(e.config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(e.client.Discovery()))
	mapping, err := mapper.RESTMapping(schema.GroupKind{Kind: "ConfigMap"}, "v1")
	if err != nil {
		return err
	}
	second, err := client.Resource(mapping.Resource).Namespace(e.namespace).Get(ctx, e.name+"-second", metav1.GetOptions{})
	if err != nil {
		return err
	}
	color, _, err := unstructured.NestedString(second.Object, "data", "color")
	if err != nil {
		return err
	}
	fmt.Printf("dynamic: a %s is one of %s, and %s is %s\n", second.GetKind(), mapping.Resource.Resource, second.GetName(), color)
	return nil
}
