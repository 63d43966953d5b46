package main

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
)

func sample() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Labels: map[string]string{label: "true"}},
		Data:       map[string]string{"color": "blue"},
	}
}

// start runs a controller on a fake cluster until the test ends, and returns what it is told.
func start(t *testing.T, client *fake.Clientset) (*controller, *events.FakeRecorder) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	recorder := events.NewFakeRecorder(10)
	factory := informers.NewSharedInformerFactory(client, 0)
	c, err := newController(client, factory, recorder)
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); c.run(ctx) }()
	t.Cleanup(func() { stop(); <-ended; factory.Shutdown() })
	return c, recorder
}

// written waits for an Event, and returns the annotation that it is about.
func written(t *testing.T, client *fake.Clientset, recorder *events.FakeRecorder) string {
	t.Helper()
	select {
	case <-recorder.Events:
	case <-time.After(10 * time.Second):
		t.Fatal("there is no Event")
	}
	got, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Annotations[annotation]
}

func TestDigestFollowsTheData(t *testing.T) {
	client := fake.NewClientset(sample())
	_, recorder := start(t, client)
	first := written(t, client, recorder)
	changed := sample()
	changed.Data["color"] = "red"
	if _, err := client.CoreV1().ConfigMaps("default").Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if second := written(t, client, recorder); len(first) != 64 || len(second) != 64 || first == second {
		t.Errorf("the digests are %q and %q", first, second)
	}
}

func TestRefusedUpdateIsTriedAgain(t *testing.T) {
	client := fake.NewClientset(sample())
	refused := 0
	client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		refused++
		return refused <= 2, nil, context.DeadlineExceeded
	})
	_, recorder := start(t, client)
	if got := written(t, client, recorder); got == "" || refused != 3 {
		t.Errorf("the digest is %q after %d updates", got, refused)
	}
}

// What an informer holds is shared.
func TestCachedObjectStaysAsItIs(t *testing.T) {
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	c, err := newController(client, factory, events.NewFakeRecorder(10))
	if err != nil {
		t.Fatal(err)
	}
	cached := sample()
	if err := c.informer.GetIndexer().Add(cached); err != nil {
		t.Fatal(err)
	}
	if err := client.Tracker().Add(sample()); err != nil {
		t.Fatal(err)
	}
	if err := c.reconcile(t.Context(), cache.ObjectName{Namespace: "default", Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if len(cached.Annotations) > 0 {
		t.Errorf("the controller has changed the informer's object: %v", cached.Annotations)
	}
}
