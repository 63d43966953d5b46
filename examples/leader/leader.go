// Package leader lets one of several replicas work.
package leader

import (
	"context"
	"errors"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// Identity returns a name for this process that no other has, as two of one Pod have after a restart.
func Identity() string {
	host, _ := os.Hostname() // it only helps people
	return host + "_" + string(uuid.NewUUID())
}

// Run calls work once this process is the leader, and returns when work has. The leader holds the Lease NAMESPACE/NAME and renews it. If it
// is killed, another replica takes the Lease over after 15 seconds; if ctx ends, as soon as work has returned.
//
// The context of work ends with ctx, and when the Lease is lost, as by a network that fails. Then somebody else may be the leader already,
// so the caller should end the process.
func Run(ctx context.Context, client kubernetes.Interface, namespace, name, identity string, work func(context.Context)) error {
	electing, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration: 15 * time.Second, // a leader that has not renewed the Lease for so long is replaced
		RenewDeadline: 10 * time.Second, // and stops before that
		RetryPeriod:   2 * time.Second,

		ReleaseOnCancel: true, // so electing ends only after work
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				defer giveUp()
				leading, stop := context.WithCancel(leading)
				defer stop()
				defer context.AfterFunc(ctx, stop)()
				work(leading)
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(leader string) {
				klog.FromContext(ctx).Info("The leader is elected", "leader", leader, "self", leader == identity)
			},
		},
	})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() {
		if !elector.IsLeader() {
			giveUp()
		}
	})()
	elector.Run(electing)
	if electing.Err() == nil {
		return errors.New("the Lease is lost: another process may be the leader")
	}
	return nil
}
