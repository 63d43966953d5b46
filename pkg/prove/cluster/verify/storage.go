package verify

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Volumes that are made for claims: what the addon storage does with the controllers, the scheduler and the kubelets.
var storageChecks = group(storageAddon, []string{scheduler, kubelet, storageAddon},
	Check{Name: "provisioning", run: provisioning},
	Check{Name: "attachment", run: attachment},
	Check{Name: "expansion", run: expansion},
	Check{Name: "snapshot", run: volumeSnapshot},
	Check{Name: "reclaim", run: reclaim},
	Check{Name: "locality", Alone: true, Skips: true, run: locality},
)

// claim is a claim of the default class.
const claim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $name}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: $size}}$source}
`

func (e *env) claim(name, size string) { e.apply(claim, "name", name, "size", size, "source", "") }

// user returns a Pod that has the volume of a claim at /data, on any node unless edits choose one.
func user(name, claim string, edits ...edit) string {
	return pod(name, "wait", append(edits, container("volumeMounts: [{name: data, mountPath: /data}]"),
		spec("{securityContext: {runAsUser: 0}, volumes: [{name: data, persistentVolumeClaim: {claimName: "+claim+"}}]}"))...)
}

// volume returns the name of a claim's volume.
func (e *env) volume(claim string) string {
	e.wait("jsonpath={.status.phase}=Bound", "persistentvolumeclaim/"+claim)
	return e.get("persistentvolumeclaim/"+claim, "{.spec.volumeName}")
}

// A claim of the default class waits for its first Pod, and then gets a volume of its size on the Pod's node.
func provisioning(e *env) {
	e.claim("data", "64Mi")
	e.becomes("events", `{.items[?(@.involvedObject.name=="data")].reason}`, "WaitForFirstConsumer")
	e.is("persistentvolumeclaim/data", "{.status.phase}", "Pending")
	node := e.lastNode()
	e.apply(user("web", "data", spec("nodeSelector: {kubernetes.io/hostname: "+node+"}")))
	e.ready("web")
	volume := "persistentvolume/" + e.volume("data")
	e.is(volume, "{.spec.storageClassName}", e.get("storageclass",
		`{.items[?(@.metadata.annotations.storageclass\.kubernetes\.io/is-default-class=="true")].metadata.name}`))
	e.is(volume, "{.spec.capacity.storage}", "64Mi")
	e.is(volume, "{.spec.nodeAffinity.required.nodeSelectorTerms[*].matchExpressions[*].values[*]}", node)
	e.holds("web", "data", 48, 64)
	e.exec("web", "write", "/data/note", "hello")
}

// holds requires that the file system of a claim's volume has a size in MiB, as a Pod sees it.
func (e *env) holds(pod, claim string, from, to int64) {
	folder := "/var/lib/kubelet/pods/" + e.get("pod/"+pod, "{.metadata.uid}") + "/volumes/kubernetes.io~csi/" + e.volume(claim) + "/mount"
	if size := fileSystemSize(e.InNode(e.get("pod/"+pod, "{.spec.nodeName}"), folder)) >> 20; size < from || size > to {
		fail("the file system in pod %s has %d MiB, want %d to %d", pod, size, from, to)
	}
}

// A volume is attached for a Pod, detached after it, and attached again for the next one, which finds the data.
func attachment(e *env) {
	e.claim("data", "16Mi")
	e.apply(user("first", "data"))
	e.ready("first")
	node := e.get("pod/first", "{.spec.nodeName}")
	e.attached("data", node+" true")
	e.exec("first", "write", "/data/note", "hello")
	e.kubectl("delete", "pod/first", "--now")
	e.attached("data", "")
	e.apply(user("second", "data"))
	e.ready("second")
	e.attached("data", node+" true")
	if note := e.exec("second", "read", "/data/note"); note != "hello" {
		fail("the second Pod reads %q", note)
	}
}

// attached waits until the volume of a claim is attached to a node ("NODE true"), or to none.
func (e *env) attached(claim, want string) {
	e.becomes("volumeattachments", `{range .items[?(@.spec.source.persistentVolumeName=="`+e.volume(claim)+
		`")]}{.spec.nodeName} {.status.attached}{end}`, want)
}

// A claim is expanded while a Pod uses its volume, and the Pod sees it. If the node may not enlarge a file system that is mounted, the next
// Pod sees it.
func expansion(e *env) {
	e.claim("data", "64Mi")
	e.apply(user("web", "data"))
	e.ready("web")
	e.holds("web", "data", 48, 64)
	e.kubectl("patch", "persistentvolumeclaim/data", "--patch", `{"spec": {"resources": {"requests": {"storage": "128Mi"}}}}`)
	e.wait(`jsonpath={.status.conditions[?(@.type=="FileSystemResizePending")].status}=True`, "persistentvolumeclaim/data")
	e.kubectl("annotate", "pod/web", "verify.slipway.build/changed=true") // or the kubelet looks at its volumes only after a minute
	if !mayResize(e.nodes[0].PID) {
		e.wait(`jsonpath={.status.conditions[?(@.type=="NodeResizeError")].status}=True`, "persistentvolumeclaim/data")
		e.kubectl("delete", "pod/web", "--now")
		e.attached("data", "")
		e.apply(user("web", "data"))
		e.ready("web")
	}
	e.wait("jsonpath={.status.capacity.storage}=128Mi", "persistentvolumeclaim/data")
	e.holds("web", "data", 100, 128)
}

// mayResize reports whether a process may have CAP_SYS_RESOURCE, without which ext4 cannot be enlarged while it is mounted.
func mayResize(pid int) bool {
	status := string(must(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))))
	_, after, _ := strings.Cut(status, "CapBnd:")
	field, _, _ := strings.Cut(strings.TrimSpace(after), "\n")
	const resource = 24 // see capability.h
	return must(strconv.ParseUint(field, 16, 64))>>resource&1 == 1
}

// A snapshot holds what was in a volume when it was taken. A claim that is made of it has that, and not what was written later.
func volumeSnapshot(e *env) {
	e.claim("data", "16Mi")
	e.apply(user("web", "data"))
	e.ready("web")
	e.exec("web", "write", "/data/note", "early")
	e.apply(`
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: early}
spec: {source: {persistentVolumeClaimName: data}}
`)
	e.wait("jsonpath={.status.readyToUse}=true", "volumesnapshot/early")
	e.exec("web", "write", "/data/note", "late")
	e.apply(claim, "name", "restored", "size", "32Mi", "source", // it may be larger
		", dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: early}")
	e.apply(user("restored", "restored", spec("nodeSelector: {kubernetes.io/hostname: "+e.get("pod/web", "{.spec.nodeName}")+"}")))
	e.ready("restored")
	for pod, want := range map[string]string{"web": "late", "restored": "early"} {
		if note := e.exec(pod, "read", "/data/note"); note != want {
			fail("pod %s reads %q, want %q", pod, note, want)
		}
	}
	e.holds("restored", "restored", 24, 32)
	e.kubectl("delete", "volumesnapshot/early")
	e.becomes("volumesnapshotcontents", `{.items[?(@.spec.volumeSnapshotRef.namespace=="`+e.namespace+`")].metadata.name}`, "")
}

// The volume of a claim that is deleted goes, with its data, when no Pod uses it any more.
func reclaim(e *env) {
	e.claim("data", "16Mi")
	e.apply(user("web", "data"))
	e.ready("web")
	volume := e.volume("data")
	file := e.InNode(e.get("pod/web", "{.spec.nodeName}"), "/var/lib/kubelet/plugins/disk.csi.slipway.build/volumes/"+volume)
	if _, err := os.Stat(file); err != nil {
		fail("the volume's file: %w", err)
	}
	e.kubectl("delete", "persistentvolumeclaim/data", "--wait=false")
	during("while a Pod uses it", func() { e.is("persistentvolume/"+volume, "{.status.phase}", "Bound") })
	e.kubectl("delete", "pod/web", "--now")
	e.wait("delete", "persistentvolumeclaim/data", "persistentvolume/"+volume)
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		fail("the volume is gone, and its file is not: %v", err)
	}
}

// A Pod follows its volume: as long as no Pod may be placed on the volume's node, it is pending, although there are others.
func locality(e *env) {
	e.severalNodes("on one, every Pod is pending as long as none may be placed there")
	node := e.lastNode()
	e.claim("data", "16Mi")
	e.apply(user("first", "data", spec("nodeSelector: {kubernetes.io/hostname: "+node+"}")))
	e.ready("first")
	e.kubectl("delete", "pod/first", "--now")
	e.cleanup(func() { e.kubectl("uncordon", node) })
	e.kubectl("cordon", node)
	e.apply(user("second", "data") + pod("free", "wait"))
	e.elsewhere("free", node)
	e.waits("second", "didn't match PersistentVolume's node affinity")
	e.kubectl("uncordon", node)
	e.ready("second")
	e.on("second", node)
}
