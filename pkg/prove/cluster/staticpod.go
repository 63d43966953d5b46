package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/prove/cluster/kubeadm"
	"slipway.build/pkg/prove/cluster/machine"
)

// A static Pod's program is replaced in place: the Pod keeps its UID, so the kubelet restarts the container at once. A Pod with another UID
// would wait ten seconds, the kubelet's pause after it could not start a Pod. It takes the UID from the manifest, if that has one, and else
// computes it from the manifest.

// A manifest is the text of kubeadm's manifest of a static Pod, with one container.
type manifest string

var (
	manifestImage = regexp.MustCompile(`(?m)^(    image: )(\S+)$`)
	manifestMeta  = regexp.MustCompile(`(?m)^metadata:\n`)
	manifestUID   = regexp.MustCompile(`(?m)^  uid: \S+\n`)
)

// image returns the image of the container.
func (m manifest) image() (string, error) {
	found := manifestImage.FindAllStringSubmatch(string(m), -1)
	if len(found) != 1 {
		return "", fmt.Errorf("it has %d images, want 1", len(found))
	}
	return found[0][2], nil
}

// with returns a manifest with another image and a UID, or without one if that is empty.
func (m manifest) with(image, uid string) manifest {
	text := manifestUID.ReplaceAllString(string(m), "")
	text = manifestImage.ReplaceAllString(text, "${1}"+image)
	if uid != "" {
		text = manifestMeta.ReplaceAllString(text, "metadata:\n  uid: "+uid+"\n")
	}
	return manifest(text)
}

const running, exited = "CONTAINER_RUNNING", "CONTAINER_EXITED"

// componentContainers returns a component's containers in a node, the newest first.
func (s *State) componentContainers(ctx context.Context, n node, component string) ([]nodeContainer, error) {
	return s.nodeContainers(ctx, n, "--all", "--label=io.kubernetes.pod.namespace=kube-system", "--name=^"+component+"$")
}

// installStaticPod has the kubelets of the control plane run a program in the image of a static Pod. It waits until the program is ready
// and, if such programs elect a leader, until a new one leads.
func (s *State) installStaticPod(ctx context.Context, component string, p *Program) error {
	elected := component != apiServer
	var leader string
	if elected {
		var err error
		if leader, err = s.leader(ctx, component); err != nil {
			return err
		}
	}
	changed := true
	for i := range s.ControlPlanes { // one by one, so that other API servers stay
		n := s.node(i + 1)
		restarted, err := s.installStaticPodIn(ctx, n, component, leader, p)
		if err != nil {
			return fmt.Errorf("node %s: %w", n.name, err)
		}
		changed = changed && restarted
	}
	if !elected || !changed {
		return nil
	}
	return s.awaitLeader(ctx, component, leader)
}

// installStaticPodIn does so in one node. It reports whether it had to restart the container.
func (s *State) installStaticPodIn(ctx context.Context, n node, component, leader string, p *Program) (restarted bool, err error) {
	file := s.NodeFile(n.name, "kubernetes", "manifests", component+".yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	now, err := manifest(text).image()
	if err != nil {
		return false, fmt.Errorf("%s: %w", file, err)
	}
	image, err := s.imageFor(ctx, component, now, p)
	if err != nil {
		return false, err
	}
	if _, err := s.crictl(ctx, n, "pull", image); err != nil {
		return false, err
	}
	before, err := s.componentContainers(ctx, n, component)
	if err != nil {
		return false, err
	}
	uid := "" // the first image's is that which the kubelet computes
	if len(before) > 0 && !same(p, s.original(component)) {
		uid = before[0].Labels["io.kubernetes.pod.uid"]
	}
	// The kubelet reads every file in the folder, so the temporary one is elsewhere.
	err = atomicfile.WriteVia(s.NodeFile(n.name), file, 0o600, func(w io.Writer) error {
		_, err := io.WriteString(w, string(manifest(text).with(image, uid)))
		return err
	})
	if err != nil {
		return false, err
	}
	restarted = now != image
	if restarted {
		s.stopContainers(ctx, n, before)
	}
	if restarted && strings.HasPrefix(leader, n.name+"_") { // a leader's name begins with that of its machine
		_ = s.releaseLease(ctx, component, leader) // awaitLeader tries again
	}
	if err := s.staticPodRuns(ctx, n, component, image, before, restarted); err != nil {
		return restarted, err
	}
	return restarted, s.renewMirror(ctx, n, component, image)
}

// stopContainers ends containers that the kubelet has asked to end. An API server would answer no new request for half a minute before it
// ends.
func (s *State) stopContainers(ctx context.Context, n node, containers []nodeContainer) {
	for _, c := range containers {
		if c.State == running {
			_, _ = s.crictl(ctx, n, "stop", "--timeout=3", c.ID) // the kubelet may have removed it
		}
	}
}

// staticPodRuns waits until a container of an image runs, one that was not there before if it was restarted, and the program is ready. The
// kubelet would say so ten seconds later.
func (s *State) staticPodRuns(ctx context.Context, n node, component, image string, before []nodeContainer, restarted bool) error {
	return s.eventually(ctx, shortPause, func(ctx context.Context) error {
		now, err := s.componentContainers(ctx, n, component)
		if err != nil {
			return err
		}
		for _, c := range now {
			old := slices.ContainsFunc(before, func(b nodeContainer) bool { return b.ID == c.ID })
			switch {
			case c.Image.Specified != image || restarted && old:
			case c.State == exited && !old:
				return machine.Stop(fmt.Errorf("%s has ended", component))
			case c.State == running:
				return s.staticPodAnswers(ctx, n, component)
			}
		}
		return fmt.Errorf("no container of %s runs", image)
	})
}

// staticPodAnswers returns an error unless the program of a static Pod says that it is ready.
func (s *State) staticPodAnswers(ctx context.Context, n node, component string) error {
	host, port := "127.0.0.1", map[string]string{"kube-controller-manager": "10257", "kube-scheduler": "10259"}[component]
	if component == apiServer {
		host, port = s.address(n), strconv.Itoa(kubeadm.APIPort)
	}
	_, err := s.inNode(ctx, n, "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "--server=https://"+host+":"+port,
		"--insecure-skip-tls-verify", "--request-timeout=5s", "get", "--raw="+readyPath(component))
	return err
}

// renewMirror writes the image of a static Pod to its mirror in the API. By the Pod's UID, the kubelet sees no need to.
func (s *State) renewMirror(ctx context.Context, n node, component, image string) error {
	return s.eventually(ctx, shortPause, func(ctx context.Context) error {
		_, err := s.system(ctx, "set", "image", "pod/"+component+"-"+n.name, component+"="+image)
		return err
	})
}

// leader returns the holder of a component's lease.
func (s *State) leader(ctx context.Context, component string) (string, error) {
	return s.get(ctx, "{.spec.holderIdentity}", "lease/"+component, "--ignore-not-found")
}

// awaitLeader waits until a component has another leader than the one that has ended.
func (s *State) awaitLeader(ctx context.Context, component, ended string) error {
	return s.eventually(ctx, shortPause, func(ctx context.Context) error {
		now, err := s.leader(ctx, component)
		if err == nil && (now == ended || now == "") {
			err = errors.Join(fmt.Errorf("no %s leads", component), s.releaseLease(ctx, component, ended))
		}
		return err
	})
}

// releaseLease releases the lease of a leader that has ended, which it would hold for 15 seconds more. Some release it themselves.
func (s *State) releaseLease(ctx context.Context, component, ended string) error {
	now, err := s.leader(ctx, component)
	if err != nil || ended == "" || now != ended {
		return err
	}
	return s.patch(ctx, "lease/"+component, "json", []object{
		{"op": "test", "path": "/spec/holderIdentity", "value": ended},
		{"op": "replace", "path": "/spec/holderIdentity", "value": ""},
	})
}
