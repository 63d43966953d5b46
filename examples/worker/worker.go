// Package worker calls a controller for the keys in its queue.
package worker

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/util/workqueue"
)

// Run calls reconcile for each key in the queue, in several goroutines, until ctx ends and the last call has returned. The queue hands out
// a key to one of them at a time, and once, however often it was added meanwhile. After an error, the key comes again: after milliseconds
// at first, and later each time, by the queue's rate limiter.
func Run[Key comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[Key], workers int,
	reconcile func(context.Context, Key) error) {
	defer context.AfterFunc(ctx, queue.ShutDown)()
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for next(ctx, queue, reconcile) {
			}
		})
	}
	all.Wait()
}

// next waits for a key, and reports whether there was one.
func next[Key comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[Key],
	reconcile func(context.Context, Key) error) bool {
	key, done := queue.Get()
	if done {
		return false
	}
	defer queue.Done(key)
	if err := reconcile(ctx, key); err != nil {
		runtime.HandleErrorWithContext(ctx, err, "It will be tried again", "key", key)
		queue.AddRateLimited(key)
		return true
	}
	queue.Forget(key) // its failures no longer count
	return true
}
