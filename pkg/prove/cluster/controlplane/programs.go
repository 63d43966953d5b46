package controlplane

import (
	"errors"
	"path/filepath"
	"strings"

	"slipway.build/pkg/mechanism/server"
)

// A Program is a program of a control plane.
type Program struct {
	Name    string // without a path
	Address string // where it listens
	Flags   []string
}

// Prepare writes certificates, keys and kubeconfigs to the folder pki in that of a cluster, and the administrator's kubeconfig to a file.
// It returns the programs in the order in which they start.
func Prepare(dir, cluster, kubeconfig, serviceNetwork string) ([]Program, error) {
	addresses, err := server.FreeAddresses(5)
	if err != nil {
		return nil, err
	}
	for i, address := range addresses {
		addresses[i] = "https://" + address
	}
	etcd, peer, api, manager, scheduler := addresses[0], addresses[1], addresses[2], addresses[3], addresses[4] // peer is etcd's, too
	a, err := newAuthority(filepath.Join(dir, "pki"))
	if err != nil {
		return nil, err
	}
	const managerName, schedulerName = "kube-controller-manager", "kube-scheduler"
	if err := errors.Join(
		a.server("etcd"),
		a.server("apiserver", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"),
		a.client("service-account", "service-account"), // its key signs service accounts' tokens
		a.user(kubeconfig, cluster, api, "admin", "kubernetes-admin", "system:masters"),
		a.user(a.file(managerName+".conf"), cluster, api, managerName, "system:"+managerName),
		a.user(a.file(schedulerName+".conf"), cluster, api, schedulerName, "system:"+schedulerName),
	); err != nil {
		return nil, err
	}
	ca := a.file("ca.crt")
	// client returns the flags of a program that asks the API server.
	client := func(program, address string, more ...string) []string {
		config := a.file(program + ".conf")
		return append([]string{"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
			"--bind-address=127.0.0.1", "--secure-port=" + port(address), "--leader-elect=false"}, more...)
	}
	return []Program{
		{"etcd", etcd, []string{"--name=" + cluster, "--data-dir=" + filepath.Join(dir, "etcd"),
			"--listen-client-urls=" + etcd, "--advertise-client-urls=" + etcd,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=" + cluster + "=" + peer,
			"--client-cert-auth", "--trusted-ca-file=" + ca, "--cert-file=" + a.file("etcd.crt"), "--key-file=" + a.file("etcd.key"),
			"--peer-client-cert-auth", "--peer-trusted-ca-file=" + ca, "--peer-cert-file=" + a.file("etcd.crt"),
			"--peer-key-file=" + a.file("etcd.key")}},
		{"kube-apiserver", api, []string{
			"--bind-address=127.0.0.1", "--secure-port=" + port(api), "--advertise-address=127.0.0.1",
			"--endpoint-reconciler-type=none", // an Endpoint must not be on loopback
			"--etcd-servers=" + etcd, "--etcd-cafile=" + ca, "--etcd-certfile=" + a.file("etcd.crt"), "--etcd-keyfile=" + a.file("etcd.key"),
			"--tls-cert-file=" + a.file("apiserver.crt"), "--tls-private-key-file=" + a.file("apiserver.key"), "--client-ca-file=" + ca,
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + a.file("service-account.key"), "--service-account-signing-key-file=" + a.file("service-account.key"),
			"--service-cluster-ip-range=" + serviceNetwork, "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
			"--enable-bootstrap-token-auth", "--allow-privileged"}},
		{managerName, manager, client(managerName, manager, "--use-service-account-credentials",
			"--controllers=*,bootstrap-signer-controller,token-cleaner-controller",
			"--root-ca-file="+ca, "--service-account-private-key-file="+a.file("service-account.key"),
			"--flex-volume-plugin-dir="+filepath.Join(dir, "volumeplugins"), // the default one, in /usr, would be made
			"--cluster-signing-cert-file="+ca, "--cluster-signing-key-file="+a.file("ca.key"))},
		{schedulerName, scheduler, client(schedulerName, scheduler)},
	}, nil
}

func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }
