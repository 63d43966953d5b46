package main

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"slipway.build/examples/operator/apis/examples/v1alpha1"
	sitefake "slipway.build/examples/operator/generated/clientset/versioned/fake"
	"slipway.build/examples/operator/generated/informers/externalversions"
)

func TestSiteHasADeploymentAndItsStatus(t *testing.T) {
	ctx := t.Context()
	client, sites := runningOperator(t)
	deployments := client.AppsV1().Deployments("default")
	made := func() (*appsv1.Deployment, bool) {
		d, err := deployments.Get(ctx, "a", metav1.GetOptions{})
		return d, err == nil
	}
	eventually(t, "there is a Deployment", func() bool { _, ok := made(); return ok })
	d, _ := made()
	if *d.Spec.Replicas != 2 || d.Spec.Template.Spec.Containers[0].Image != "example.com/web" || metav1.GetControllerOf(d).UID != "1" {
		t.Errorf("the Deployment is %+v", d)
	}
	eventually(t, "the Site waits", saysReady(t, sites, 0, metav1.ConditionFalse, "Waiting"))
	d.Status.Replicas, d.Status.ReadyReplicas, d.Status.UpdatedReplicas = 2, 2, 2
	if _, err := deployments.UpdateStatus(ctx, d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Site is ready", saysReady(t, sites, 2, metav1.ConditionTrue, "AllReady"))
	if err := deployments.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Deployment is made again", func() bool { _, ok := made(); return ok })
}

func TestDeploymentOfSomebodyElseIsLeftAlone(t *testing.T) {
	theirs := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	client, sites := runningOperator(t, theirs)
	eventually(t, "the Site says so", saysReady(t, sites, 0, metav1.ConditionFalse, "NameTaken"))
	d, err := client.AppsV1().Deployments("default").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || len(d.OwnerReferences) > 0 || len(d.Labels) > 0 {
		t.Errorf("the Deployment is %+v, %v", d, err)
	}
}

// runningOperator runs an operator for the test, where there are a Site and other objects.
func runningOperator(t *testing.T, objects ...runtime.Object) (*fake.Clientset, *sitefake.Clientset) {
	ctx, stop := context.WithCancel(t.Context())
	client, sites := fake.NewClientset(objects...), sitefake.NewClientset(&v1alpha1.Site{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "1", Generation: 3},
		Spec:       v1alpha1.SiteSpec{Image: "example.com/web", Replicas: 2},
	})
	siteFactory, factory := externalversions.NewSharedInformerFactory(sites, 0), kubeinformers.NewSharedInformerFactory(client, 0)
	o, err := newOperator(client, sites, siteFactory.Examples().V1alpha1().Sites(), factory.Apps().V1().Deployments())
	if err != nil {
		t.Fatal(err)
	}
	siteFactory.StartWithContext(ctx)
	factory.StartWithContext(ctx)
	if err := o.sync(ctx); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); o.run(ctx) }()
	t.Cleanup(func() { stop(); <-ended; siteFactory.Shutdown(); factory.Shutdown() })
	return client, sites
}

// saysReady returns whether the Site's status says so many ready replicas, and this of its being ready.
func saysReady(t *testing.T, sites *sitefake.Clientset, replicas int32, want metav1.ConditionStatus, reason string) func() bool {
	return func() bool {
		site, err := sites.ExamplesV1alpha1().Sites("default").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			return false
		}
		ready := meta.FindStatusCondition(site.Status.Conditions, v1alpha1.ConditionReady)
		return site.Status.ReadyReplicas == replicas && ready != nil && ready.Status == want && ready.Reason == reason &&
			ready.ObservedGeneration == 3
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return so(), nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
