package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"slipway.build/pkg/mechanism/atomicfile"
)

// controlPlane returns the steps to a control plane without nodes: programs on free ports of loopback.
func (s *State) controlPlane() []step {
	var at endpoints
	return []step{
		{"certificates", []string{"unpack"}, func(context.Context) error {
			if err := freePorts(&at.etcd, &at.peer, &at.api, &at.manager, &at.scheduler); err != nil {
				return err
			}
			return s.makeCertificates(at)
		}},
		{"etcd", []string{"certificates"}, func(context.Context) error { return s.startEtcd(at) }},
		{"kube-apiserver", []string{"etcd"}, func(ctx context.Context) error {
			if err := s.startAPIServer(at); err != nil {
				return err
			}
			return s.answers(ctx, apiServer, loopback(at.api))
		}},
		{"kube-controller-manager", []string{"kube-apiserver"}, func(ctx context.Context) error {
			if err := s.startControllerManager(at); err != nil {
				return err
			}
			return s.answers(ctx, "kube-controller-manager", loopback(at.manager))
		}},
		{"kube-scheduler", []string{"kube-apiserver"}, func(ctx context.Context) error {
			if err := s.startScheduler(at); err != nil {
				return err
			}
			return s.answers(ctx, "kube-scheduler", loopback(at.scheduler))
		}},
	}
}

// endpoints are the ports that the programs of the control plane listen on. Port peer is etcd's second one.
type endpoints struct {
	etcd, peer, api, manager, scheduler int
}

// freePorts finds unused ports of loopback.
func freePorts(ports ...*int) error {
	for _, port := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close() // until then no other process gets the port
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return nil
}

func loopback(port int) string { return "https://127.0.0.1:" + strconv.Itoa(port) }

// makeCertificates makes the certificates of the programs, and their kubeconfigs.
func (s *State) makeCertificates(at endpoints) error {
	a, err := newAuthority(s.path("pki"))
	if err != nil {
		return err
	}
	for _, made := range []error{
		a.server("etcd"),
		a.server("apiserver", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"),
		a.client("admin", "kubernetes-admin", "system:masters"),
		a.client("kube-controller-manager", "system:kube-controller-manager"),
		a.client("kube-scheduler", "system:kube-scheduler"),
		a.client("service-account", "service-account"), // its key signs service accounts' tokens
		s.writeKubeconfig(s.Kubeconfig(), "admin", at.api),
		s.writeKubeconfig(s.path("pki", "kube-controller-manager.conf"), "kube-controller-manager", at.api),
		s.writeKubeconfig(s.path("pki", "kube-scheduler.conf"), "kube-scheduler", at.api),
	} {
		if made != nil {
			return made
		}
	}
	return nil
}

// writeKubeconfig writes a kubeconfig for the holder of a client certificate, with the certificates and the key in it.
func (s *State) writeKubeconfig(file, holder string, port int) error {
	data := map[string][]byte{}
	for _, name := range []string{"ca.crt", holder + ".crt", holder + ".key"} {
		text, err := os.ReadFile(s.path("pki", name))
		if err != nil {
			return err
		}
		data[strings.TrimPrefix(name, holder)] = text
	}
	config, err := documents(object{
		"apiVersion": "v1", "kind": "Config", "current-context": s.Name,
		"clusters": []object{{"name": s.Name, "cluster": object{"server": loopback(port), "certificate-authority-data": data["ca.crt"]}}},
		"users":    []object{{"name": holder, "user": object{"client-certificate-data": data[".crt"], "client-key-data": data[".key"]}}},
		"contexts": []object{{"name": s.Name, "context": object{"cluster": s.Name, "user": holder}}},
	})
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(file, config, 0o600)
}

// startProgram starts a program of the control plane.
func (s *State) startProgram(name, address string, flags ...string) error {
	program, err := s.programPath(name)
	if err != nil {
		return err
	}
	return s.start(Process{Name: name, Address: address, Flags: flags}, 0, s.dir, append([]string{program}, flags...)...)
}

func (s *State) startEtcd(at endpoints) error {
	pki := func(name string) string { return s.path("pki", name) }
	return s.startProgram("etcd", loopback(at.etcd), "--name="+s.Name, "--data-dir="+s.path("etcd"),
		"--listen-client-urls="+loopback(at.etcd), "--advertise-client-urls="+loopback(at.etcd),
		"--listen-peer-urls="+loopback(at.peer), "--initial-advertise-peer-urls="+loopback(at.peer),
		"--initial-cluster="+s.Name+"="+loopback(at.peer),
		"--client-cert-auth", "--trusted-ca-file="+pki("ca.crt"), "--cert-file="+pki("etcd.crt"), "--key-file="+pki("etcd.key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file="+pki("ca.crt"), "--peer-cert-file="+pki("etcd.crt"),
		"--peer-key-file="+pki("etcd.key"))
}

func (s *State) startAPIServer(at endpoints) error {
	pki := func(name string) string { return s.path("pki", name) }
	return s.startProgram(apiServer, loopback(at.api),
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(at.api), "--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", // an Endpoint must not be on loopback
		"--etcd-servers="+loopback(at.etcd), "--etcd-cafile="+pki("ca.crt"), "--etcd-certfile="+pki("etcd.crt"),
		"--etcd-keyfile="+pki("etcd.key"),
		"--tls-cert-file="+pki("apiserver.crt"), "--tls-private-key-file="+pki("apiserver.key"), "--client-ca-file="+pki("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+pki("service-account.key"), "--service-account-signing-key-file="+pki("service-account.key"),
		"--service-cluster-ip-range="+serviceNetwork, "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth", "--allow-privileged")
}

func (s *State) startControllerManager(at endpoints) error {
	pki := func(name string) string { return s.path("pki", name) }
	config := pki("kube-controller-manager.conf")
	return s.startProgram("kube-controller-manager", loopback(at.manager),
		"--kubeconfig="+config, "--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(at.manager), "--leader-elect=false", "--use-service-account-credentials",
		"--controllers=*,bootstrap-signer-controller,token-cleaner-controller",
		"--root-ca-file="+pki("ca.crt"), "--service-account-private-key-file="+pki("service-account.key"),
		"--flex-volume-plugin-dir="+s.path("volumeplugins"), // the default one, in /usr, would be made
		"--cluster-signing-cert-file="+pki("ca.crt"), "--cluster-signing-key-file="+pki("ca.key"))
}

func (s *State) startScheduler(at endpoints) error {
	config := s.path("pki", "kube-scheduler.conf")
	return s.startProgram("kube-scheduler", loopback(at.scheduler),
		"--kubeconfig="+config, "--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(at.scheduler), "--leader-elect=false")
}

// answers waits until a program of the control plane reports that it is ready.
func (s *State) answers(ctx context.Context, program, server string) error {
	path := "/readyz"
	if program == "kube-controller-manager" {
		path = "/healthz" // it has no other
	}
	args := []string{"get", "--raw=" + path}
	if program != apiServer {
		args = append(args, "--server="+server, "--insecure-skip-tls-verify") // the program made its certificate itself
	}
	p, _ := s.process(program)
	alive := func() error { return s.checkProcess(p) }
	err := s.eventuallyWhile(ctx, soon, alive, func(ctx context.Context) (bool, error) {
		_, err := s.kubectl(ctx, args...)
		return err == nil, err
	})
	if err != nil && ctx.Err() == nil && alive() == nil {
		return fmt.Errorf("%w; see %s", err, s.log(program))
	}
	return err
}
