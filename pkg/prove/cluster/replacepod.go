package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway.build/pkg/prove/cluster/machine"
)

// imageFor returns the name of the image in which a program runs: the release's, or one that has the program in a layer above it, which
// it pushes to the cluster's registry. Now is the name of the image that runs, from the same repository.
//
// Each image has a name of its own: the kubelet makes a container wait that it has started before.
func (s *State) imageFor(ctx context.Context, component, now string, p *Program) (string, error) {
	if p != nil && p.Image != "" {
		return p.Image, nil
	}
	i, err := s.image(component + ".tar")
	if err != nil {
		return "", err
	}
	repository := now[:strings.LastIndex(now, ":")+1]
	at := slices.IndexFunc(i.Names, func(name string) bool { return strings.HasPrefix(name, repository) })
	if at < 0 || repository == "" {
		return "", fmt.Errorf("image %s of %s has no name like %s", i.Archive, component, now)
	}
	released := i.Names[at]
	if p == nil {
		return released, nil
	}
	image := fmt.Sprintf("%s-%s.%s", released, p.SHA256[:12], strconv.FormatInt(time.Now().UnixMilli(), 36))
	if err := s.registry().PushWith(ctx, i, image, s.stored(*p)); err != nil {
		return "", err
	}
	p.Image = image
	return image, nil
}

// workloads are the objects in the namespace kube-system of components that are no static Pods.
var workloads = map[string]string{
	"kube-proxy": "daemonset/kube-proxy", "coredns": "deployment/coredns", "metrics-server": "deployment/metrics-server",
	"cloud-controller-manager": "deployment/cloud-controller-manager", "traefik": "deployment/traefik",
}

// installWorkload has a DaemonSet or a Deployment roll out an image with a program.
func (s *State) installWorkload(ctx context.Context, component string, p *Program) error {
	workload := workloads[component]
	now, err := s.get(ctx, `{.spec.template.spec.containers[?(@.name=="`+component+`")].image}`, workload)
	if err != nil {
		return err
	}
	image, err := s.imageFor(ctx, component, now, p)
	if err != nil {
		return err
	}
	err = s.eachNode(ctx, func(ctx context.Context, n node) error {
		_, err := s.crictl(ctx, n, "pull", image)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := s.system(ctx, "set", "image", workload, component+"="+image); err != nil {
		return err
	}
	return s.eventually(ctx, longPause, func(ctx context.Context) error {
		counts, err := s.get(ctx, `{range .items[*].status.containerStatuses[?(@.image=="`+image+`")]}{.restartCount} {end}`, "pods")
		again := func(count string) bool { return count != "0" && count != "1" } // once may be the machine's fault
		if err == nil && slices.ContainsFunc(strings.Fields(counts), again) {
			return machine.Stop(fmt.Errorf("%s has ended twice", component))
		}
		_, err = s.system(ctx, "rollout", "status", workload, "--timeout=1s")
		return err
	})
}
