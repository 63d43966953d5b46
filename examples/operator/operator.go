package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"slipway.build/examples/operator/apis/examples/v1alpha1"
	"slipway.build/examples/operator/generated/clientset/versioned"
	informers "slipway.build/examples/operator/generated/informers/externalversions/examples/v1alpha1"
	listers "slipway.build/examples/operator/generated/listers/examples/v1alpha1"
	"slipway.build/examples/worker"
)

const name = "site-operator"

// An operator keeps a Deployment for each Site, and says in the Site's status what became of it.
type operator struct {
	client      kubernetes.Interface
	sites       versioned.Interface
	siteLister  listers.SiteLister
	deployments appslisters.DeploymentLister
	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName] // names of Sites
	synced      []cache.InformerSynced
}

func newOperator(client kubernetes.Interface, sites versioned.Interface, siteInformer informers.SiteInformer,
	deploymentInformer appsinformers.DeploymentInformer) (*operator, error) {
	o := &operator{
		client: client, sites: sites, siteLister: siteInformer.Lister(), deployments: deploymentInformer.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	for informer, site := range map[cache.SharedIndexInformer]func(metav1.Object) (name string, ok bool){
		siteInformer.Informer():       func(site metav1.Object) (string, bool) { return site.GetName(), true },
		deploymentInformer.Informer(): siteOf,
	} {
		enqueue := func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok { // the informer missed when it was deleted
				object = gone.Obj
			}
			of, err := meta.Accessor(object)
			if err != nil {
				return
			}
			if name, ok := site(of); ok {
				o.queue.Add(cache.ObjectName{Namespace: of.GetNamespace(), Name: name})
			}
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: enqueue, UpdateFunc: func(_, changed any) { enqueue(changed) }, DeleteFunc: enqueue,
		}); err != nil {
			return nil, err
		}
		o.synced = append(o.synced, informer.HasSynced)
	}
	return o, nil
}

// siteOf returns the name of the Site that a Deployment belongs to.
func siteOf(deployment metav1.Object) (name string, ok bool) {
	owner := metav1.GetControllerOf(deployment)
	if owner == nil || owner.Kind != "Site" {
		return "", false
	}
	return owner.Name, true
}

// sync waits until the informers, which have been started, know what there is. An operator that waits for long is better started again: the
// API server may not serve the resource, or a watch may hang.
func (o *operator) sync(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if !cache.WaitForCacheSync(waiting.Done(), o.synced...) && ctx.Err() == nil {
		return errors.New("after a minute, the Sites and Deployments of the cluster are not known")
	}
	return nil
}

// run works until ctx ends.
func (o *operator) run(ctx context.Context) { worker.Run(ctx, o.queue, 2, o.reconcile) }

// reconcile brings what belongs to one Site to what it should be.
func (o *operator) reconcile(ctx context.Context, name cache.ObjectName) error {
	site, err := o.siteLister.Sites(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) || err == nil && site.DeletionTimestamp != nil {
		return nil // the garbage collector removes the Deployment, since the Site is its owner
	}
	if err != nil {
		return err
	}
	existing, err := o.deployments.Deployments(site.Namespace).Get(site.Name)
	if err == nil && !metav1.IsControlledBy(existing, site) {
		// The informer tells only of Deployments that are of a Site, so this one has to be asked about until it is gone.
		defer o.queue.AddAfter(name, time.Minute)
		return o.updateStatus(ctx, site, 0, metav1.Condition{
			Status: metav1.ConditionFalse, Reason: "NameTaken", Message: fmt.Sprintf("the Deployment %s is not of the Site", site.Name),
		})
	}
	deployment, err := o.applyDeployment(ctx, site)
	if err != nil {
		return err
	}
	return o.updateStatus(ctx, site, deployment.Status.ReadyReplicas, ready(site, deployment))
}

// applyDeployment makes the Deployment of a Site, or brings the fields that are the operator's back to what they should be. Server-side
// apply leaves fields of others alone, and writes nothing if nothing differs.
func (o *operator) applyDeployment(ctx context.Context, site *v1alpha1.Site) (*appsv1.Deployment, error) {
	labels := map[string]string{"examples.slipway.build/site": site.Name}
	return o.client.AppsV1().Deployments(site.Namespace).Apply(ctx, appsapply.Deployment(site.Name, site.Namespace).
		WithLabels(labels).
		WithOwnerReferences(metaapply.OwnerReference().
			WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind("Site").WithName(site.Name).WithUID(site.UID).
			WithController(true).WithBlockOwnerDeletion(true)).
		WithSpec(appsapply.DeploymentSpec().
			WithReplicas(site.Spec.Replicas).
			WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(coreapply.PodTemplateSpec().
				WithLabels(labels).
				WithSpec(coreapply.PodSpec().WithContainers(coreapply.Container().WithName("server").WithImage(site.Spec.Image))))),
		metav1.ApplyOptions{FieldManager: name, Force: true}) // the fields are the operator's alone
}

// ready says whether all servers of a Site are ready. The Deployment is what apply returned, since the informer's may be of before that.
// When its status changes, the Site comes again.
func ready(site *v1alpha1.Site, d *appsv1.Deployment) metav1.Condition {
	seen, want := d.Status, site.Spec.Replicas
	c := metav1.Condition{
		Status: metav1.ConditionFalse, Reason: "Waiting",
		Message: fmt.Sprintf("%d of %d servers are ready", seen.ReadyReplicas, want),
	}
	// While servers are replaced, there are more than wanted, and some of those that are ready are old.
	if seen.ObservedGeneration == d.Generation && seen.Replicas == want && seen.UpdatedReplicas == want && seen.ReadyReplicas == want {
		c.Status, c.Reason = metav1.ConditionTrue, "AllReady"
	}
	return c
}

// updateStatus says in the Site what was seen.
func (o *operator) updateStatus(ctx context.Context, site *v1alpha1.Site, readyReplicas int32, ready metav1.Condition) error {
	changed := site.DeepCopy() // others read the informer's object
	changed.Status.ObservedGeneration = site.Generation
	changed.Status.ReadyReplicas = readyReplicas
	ready.Type, ready.ObservedGeneration = v1alpha1.ConditionReady, site.Generation
	meta.SetStatusCondition(&changed.Status.Conditions, ready)
	if equality.Semantic.DeepEqual(site.Status, changed.Status) {
		return nil
	}
	_, err := o.sites.ExamplesV1alpha1().Sites(site.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	return err
}
