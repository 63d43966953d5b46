package verify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/http"
)

// An Ingress of the default class leads requests to Services by their host and path, and terminates TLS with the certificate of a Secret.
// When it changes, requests go elsewhere, and when it is deleted, nowhere.
func ingress(e *env) {
	e.web()
	e.service("web")
	host, another := "web."+e.namespace+".example", "other."+e.namespace+".example"
	server := selfSigned(host)
	text := pod("other", "serve") + `---
{apiVersion: v1, kind: Service, metadata: {name: other}, spec: {selector: {app: other}, ports: [{port: 8080}]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: certificate}, type: kubernetes.io/tls, data: {tls.crt: $certificate, tls.key: $key}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: both}
spec:
  tls: [{hosts: [$host], secretName: certificate}]
  rules:
  - {host: $host, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}}
  - {host: $another, http: {paths: [{path: /hostname, pathType: Exact, backend: {service: {name: other, port: {number: 8080}}}}]}}
`
	e.apply(text, "host", host, "another", another, "certificate", base64.StdEncoding.EncodeToString(server.certificate),
		"key", base64.StdEncoding.EncodeToString(server.key))
	const ip = "{.status.loadBalancer.ingress[0].ip}"
	e.wait("jsonpath="+ip, "ingress/both")
	address := e.get("ingress/both", ip)
	ask := e.askAt(address, server)
	e.reachesBoth(ask, "http://"+host)
	during("with the certificate of the Secret", func() { e.reachesBoth(ask, "https://"+host) })
	nowhere := func(url string) {
		e.until(func() { refused("404", func() string { return ask(url) }) })
	}
	e.until(func() {
		if said := ask("http://" + another + "/hostname"); said != "other" {
			fail("the answer is %q, want %q", said, "other")
		}
	})
	for _, url := range []string{"http://" + another + "/", "http://" + another + "/hostname/more",
		"http://nobody." + e.namespace + ".example/hostname"} {
		during(url+", for which there is no rule", func() { nowhere(url) })
	}
	const toWeb = `[{"op": "replace", "path": "/spec/rules/1/http/paths/0/backend/service", "value": {"name": "web", "port": {"number": 80}}}]`
	e.kubectl("patch", "ingress/both", "--type=json", "--patch="+toWeb)
	during("after the Ingress has changed", func() { e.reachesBoth(ask, "http://"+another) })
	e.kubectl("delete", "ingress/both")
	nowhere("http://" + host + "/hostname")
}

// askAt returns a function that gets URLs from one address, whatever their host, and trusts only one certificate.
func (e *env) askAt(address string, trusted identity) func(url string) string {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted.certificate)
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(to)
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(address, port))
		},
	}
	return func(url string) string { return e.httpGetBy(transport, url, "") }
}
