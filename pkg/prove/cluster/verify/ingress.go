package verify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"time"
)

// An Ingress of the default class leads requests to Services by their host and path, and is the end of TLS with the certificate of a
// Secret. Where it leads follows the Ingress, until it is deleted.
func ingress(ctx context.Context, e *env) error {
	if err := e.web(ctx); err != nil {
		return err
	}
	if err := e.service(ctx, "web"); err != nil {
		return err
	}
	host, another := "web."+e.namespace+".example", "other."+e.namespace+".example"
	server, err := selfSigned(host)
	if err != nil {
		return err
	}
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
	err = e.apply(ctx, text, "host", host, "another", another, "certificate", base64.StdEncoding.EncodeToString(server.certificate),
		"key", base64.StdEncoding.EncodeToString(server.key))
	if err != nil {
		return err
	}
	const ip = "{.status.loadBalancer.ingress[0].ip}"
	if err := e.wait(ctx, "jsonpath="+ip, "ingress/both"); err != nil {
		return err
	}
	address, err := e.get(ctx, "ingress/both", ip)
	if err != nil {
		return err
	}
	ask := askAt(address, server)
	if err := reachesBoth(ctx, ask, "http://"+host); err != nil {
		return err
	}
	if err := reachesBoth(ctx, ask, "https://"+host); err != nil {
		return fmt.Errorf("with the certificate of the Secret: %w", err)
	}
	nowhere := func(url string) error {
		return until(ctx, func() error { return isRefused("404")(ask(ctx, url)) })
	}
	if err := until(ctx, func() error { return isAnswer("other")(ask(ctx, "http://"+another+"/hostname")) }); err != nil {
		return err
	}
	for _, url := range []string{"http://" + another + "/", "http://" + another + "/hostname/more",
		"http://nobody." + e.namespace + ".example/hostname"} {
		if err := nowhere(url); err != nil {
			return fmt.Errorf("%s, for which there is no rule: %w", url, err)
		}
	}
	const toWeb = `[{"op": "replace", "path": "/spec/rules/1/http/paths/0/backend/service", "value": {"name": "web", "port": {"number": 80}}}]`
	if _, err := e.kubectl(ctx, "patch", "ingress/both", "--type=json", "--patch="+toWeb); err != nil {
		return err
	}
	if err := reachesBoth(ctx, ask, "http://"+another); err != nil {
		return fmt.Errorf("after the Ingress has changed: %w", err)
	}
	if _, err := e.kubectl(ctx, "delete", "ingress/both"); err != nil {
		return err
	}
	return nowhere("http://" + host + "/hostname")
}

// isAnswer requires a given answer.
func isAnswer(want string) func(string, error) error {
	return func(said string, err error) error {
		if err == nil && said != want {
			err = fmt.Errorf("the answer is %q, want %q", said, want)
		}
		return err
	}
}

// askAt returns a function that asks for URLs at one address, whatever their host, and trusts one certificate alone.
func askAt(address string, trusted identity) func(ctx context.Context, url string) (string, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted.certificate)
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(to)
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(address, port))
		},
	}}
	return func(ctx context.Context, url string) (string, error) { return get(ctx, client, url) }
}
