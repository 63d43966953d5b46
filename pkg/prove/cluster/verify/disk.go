package verify

import (
	"strings"
)

// unusedImage is the artifact with an image that no part of a cluster runs.
const unusedImage = "kubectl.tar"

// A node whose disk is almost full takes no Pods, removes the images that no container uses, and evicts Pods, but not critical ones. Once
// there is space, it takes Pods again, and pulls the image again.
func diskPressure(e *env) {
	image := must(e.Image(unusedImage))
	node := e.lastNode()
	on := spec("nodeName: " + node)
	once := strings.ReplaceAll(pod("once", "version --client", on, spec("restartPolicy: Never")), "$image", image)
	runOnce := func() {
		e.apply(once)
		e.wait("jsonpath={.status.phase}=Succeeded", "pod/once")
		e.kubectl("delete", "pod/once")
	}
	runOnce()
	e.hasImage(node, image, true)

	// By default, there is pressure if less than 15 % of an image file system is available.
	e.apply(pod("victim", "wait", on) + pod("critical", "reserve /data/file 90", on,
		container("volumeMounts: [{name: data, mountPath: /data}]"),
		spec("{priorityClassName: system-node-critical, securityContext: {runAsUser: 0}, volumes: [{name: data, emptyDir: {}}]}")))
	e.cleanup(func() {
		e.kubectl("delete", "pod/critical", "--ignore-not-found")
		e.becomes("node/"+node, diskPressureStatus, "False")
	})
	e.ready("victim", "critical")
	const tainted = `{.spec.taints[?(@.key=="node.kubernetes.io/disk-pressure")].effect}`
	e.becomes("node/"+node, diskPressureStatus, "True")
	e.becomes("node/"+node, tainted, "NoSchedule")
	e.evicted("victim")
	e.hasImage(node, image, false)
	e.hasImage(node, e.image, true) // a container runs it
	e.is("pod/critical", "{.status.phase}", "Running")

	e.kubectl("delete", "pod/critical")
	e.becomes("node/"+node, tainted, "")
	runOnce()
}

// diskPressureStatus is the JSONPath of a node's condition.
const diskPressureStatus = `{.status.conditions[?(@.type=="DiskPressure")].status}`

// hasImage waits until the kubelet of a node reports that it has an image, or that it has not.
func (e *env) hasImage(node, image string, want bool) {
	e.until(func() {
		names := e.get("node/"+node, "{.status.images[*].names[*]}")
		if strings.Contains(" "+names+" ", " "+image+" ") != want {
			fail("that %s is on %s is %t: it has %s", image, node, !want, names)
		}
	})
}
