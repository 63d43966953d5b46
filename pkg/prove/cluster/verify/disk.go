package verify

import (
	"context"
	"fmt"
	"strings"
)

// unusedImage is the artifact with an image that no part of a cluster runs.
const unusedImage = "kubectl.tar"

// A node whose disk is almost full takes no Pods, removes the images that no container uses, and evicts Pods, but not critical ones. Once
// there is space, it takes Pods again, and pulls the image again.
func diskPressure(ctx context.Context, e *env) error {
	image, err := e.Image(unusedImage)
	if err != nil {
		return err
	}
	node := e.lastNode()
	on := spec("nodeName: " + node)
	once := strings.ReplaceAll(pod("once", "version --client", on, spec("restartPolicy: Never")), "$image", image)
	runOnce := func() error {
		if err := e.apply(ctx, once); err != nil {
			return err
		}
		if err := e.wait(ctx, "jsonpath={.status.phase}=Succeeded", "pod/once"); err != nil {
			return err
		}
		_, err := e.kubectl(ctx, "delete", "pod/once")
		return err
	}
	if err := runOnce(); err != nil {
		return err
	}
	if err := e.hasImage(ctx, node, image, true); err != nil {
		return err
	}

	// By default, there is pressure if less than 15 % of an image file system is available.
	err = e.apply(ctx, pod("victim", "wait", on)+pod("critical", "reserve /data/file 90", on,
		container("volumeMounts: [{name: data, mountPath: /data}]"),
		spec("{priorityClassName: system-node-critical, securityContext: {runAsUser: 0}, volumes: [{name: data, emptyDir: {}}]}")))
	if err != nil {
		return err
	}
	e.cleanup(func(ctx context.Context) error {
		if _, err := e.kubectl(ctx, "delete", "pod/critical", "--ignore-not-found"); err != nil {
			return err
		}
		return until(ctx, func() error { return e.is(ctx, "node/"+node, diskPressureStatus, "False") })
	})
	if err := e.ready(ctx, "victim", "critical"); err != nil {
		return err
	}
	const tainted = `{.spec.taints[?(@.key=="node.kubernetes.io/disk-pressure")].effect}`
	if err := until(ctx, func() error { return e.is(ctx, "node/"+node, diskPressureStatus, "True") }); err != nil {
		return err
	}
	if err := until(ctx, func() error { return e.is(ctx, "node/"+node, tainted, "NoSchedule") }); err != nil {
		return err
	}
	if err := e.evicted(ctx, "victim"); err != nil {
		return err
	}
	if err := e.hasImage(ctx, node, image, false); err != nil {
		return err
	}
	if err := e.hasImage(ctx, node, e.image, true); err != nil { // a container runs it
		return err
	}
	if err := e.is(ctx, "pod/critical", "{.status.phase}", "Running"); err != nil {
		return err
	}

	if _, err := e.kubectl(ctx, "delete", "pod/critical"); err != nil {
		return err
	}
	if err := until(ctx, func() error { return e.is(ctx, "node/"+node, tainted, "") }); err != nil {
		return err
	}
	return runOnce()
}

// diskPressureStatus is the JSONPath of a node's condition.
const diskPressureStatus = `{.status.conditions[?(@.type=="DiskPressure")].status}`

// hasImage waits until the kubelet of a node reports that it has an image, or that it has not.
func (e *env) hasImage(ctx context.Context, node, image string, want bool) error {
	return until(ctx, func() error {
		names, err := e.get(ctx, "node/"+node, "{.status.images[*].names[*]}")
		if err == nil && strings.Contains(" "+names+" ", " "+image+" ") != want {
			err = fmt.Errorf("that %s is on %s is %t: it has %s", image, node, !want, names)
		}
		return err
	})
}
