package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"

	"slipway.build/examples/worker"
)

const (
	label      = "examples.slipway.build/digest" // of ConfigMaps that get a digest
	annotation = "examples.slipway.build/sha256"
)

// A controller annotates ConfigMaps with the digest of their data. Whatever happens to a ConfigMap, it computes what should be from what
// is: events that come twice, late or together do no harm.
type controller struct {
	client   kubernetes.Interface
	informer cache.SharedIndexInformer
	lister   corelisters.ConfigMapLister
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	recorder events.EventRecorder
}

// newController returns a controller of the ConfigMaps that a factory's informers see.
func newController(client kubernetes.Interface, factory informers.SharedInformerFactory,
	recorder events.EventRecorder) (*controller, error) {
	configMaps := factory.Core().V1().ConfigMaps()
	c := &controller{
		client:   client,
		informer: configMaps.Informer(),
		lister:   configMaps.Lister(),
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
		recorder: recorder,
	}
	// Handlers only take down what has changed, and return at once. The informer calls add for what exists already, too, and update for
	// everything each time that it lists again.
	_, err := c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueue,
		UpdateFunc: func(_, changed any) { c.enqueue(changed) },
	})
	return c, err
}

func (c *controller) enqueue(object any) {
	if name, err := cache.ObjectToName(object); err == nil { // all that an informer holds have one
		c.queue.Add(name)
	}
}

// run works until ctx ends. The factory's informers have been started.
func (c *controller) run(ctx context.Context) {
	if cache.WaitForCacheSync(ctx.Done(), c.informer.HasSynced) { // before that, the lister lacks what exists
		worker.Run(ctx, c.queue, 2, c.reconcile)
	}
}

// reconcile brings one ConfigMap to what it should be.
func (c *controller) reconcile(ctx context.Context, name cache.ObjectName) error {
	cached, err := c.lister.ConfigMaps(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) { // it was deleted, or has lost its label
		return nil
	}
	if err != nil {
		return err
	}
	want, err := digest(cached)
	if err != nil {
		return err
	}
	if cached.Annotations[annotation] == want {
		return nil
	}
	changed := cached.DeepCopy() // others read the informer's object
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, annotation, want)

	// A conflict is an error like another: the key comes again, after the informer has got the newer object.
	if changed, err = c.client.CoreV1().ConfigMaps(name.Namespace).Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return err
	}
	c.recorder.Eventf(changed, nil, corev1.EventTypeNormal, "Digested", "Digest", "The data has the digest %s", want)
	return nil
}

// digest returns the SHA-256 of a ConfigMap's data.
func digest(c *corev1.ConfigMap) (string, error) {
	data, err := json.Marshal([]any{c.Data, c.BinaryData}) // sorted by keys
	if err != nil {
		return "", fmt.Errorf("digest %s: %w", c.Name, err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// newRecorder returns what writes Events of the controller, which `kubectl describe` shows, until stop is called.
func newRecorder(ctx context.Context, client kubernetes.Interface) (recorder events.EventRecorder, stop func(), err error) {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, nil, err
	}
	return broadcaster.NewRecorder(scheme.Scheme, "digest-controller"), broadcaster.Shutdown, nil
}
