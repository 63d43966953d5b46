package verify

import (
	"context"
	"crypto/tls"
	"debug/buildinfo"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"slipway.build/pkg/prove/cluster"
	"slipway.build/pkg/release"
)

// fips requires that the API server runs as release.json says: with the version of Go's cryptographic module, in FIPS mode, and without
// what FIPS 140-3 does not approve in TLS.
func fips(e *env) {
	declared, err := e.FIPS()
	noError(err)
	if declared == nil {
		noError(skip("needs a release that is compiled for FIPS mode, and release.json does not say so of this one"))
	}
	pid := e.apiServerPID()
	info := must(buildinfo.ReadFile(fmt.Sprintf("/proc/%d/exe", pid)))
	environment := must(os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)))
	noError(inFIPSMode(info.Settings, strings.Split(string(environment), "\x00"), *declared))
	server := must(url.Parse(e.kubectl("config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}")))
	noError(onlyApproved(e.ctx, server.Host))
}

// apiServerPID returns a process of an API server.
func (e *env) apiServerPID() int {
	if !e.ControlPlaneOnly {
		return e.processes(e.nodes[0].Name, apiServer)[0].Pid
	}
	i := slices.IndexFunc(e.Processes, func(p cluster.Process) bool { return p.Name == apiServer })
	if i < 0 {
		fail("the cluster has no %s", apiServer)
	}
	return e.Processes[i].PID
}

// inFIPSMode returns an error unless a program with these build settings and this environment is as a release declares it.
func inFIPSMode(settings []debug.BuildSetting, environment []string, declared release.FIPS) error {
	built := map[string]string{}
	for _, s := range settings {
		built[s.Key] = s.Value
	}
	if got := built["GOFIPS140"]; got != declared.Version {
		return fmt.Errorf("%s is compiled with GOFIPS140=%s, and release.json says %s", apiServer, got, declared.Version)
	}
	mode, asked := fipsSetting(built["DefaultGODEBUG"]), ""
	for _, e := range environment {
		if value, ok := strings.CutPrefix(e, "GODEBUG="); ok {
			asked = fipsSetting(value)
		}
	}
	if asked != "" {
		mode = asked
	}
	if mode != "on" && mode != "only" {
		return fmt.Errorf("%s does not run in FIPS mode: its setting fips140 is %q", apiServer, mode)
	}
	if declared.Environment && asked == "" {
		return fmt.Errorf("the environment of %s does not ask for FIPS mode, and release.json says so", apiServer)
	}
	return nil
}

// fipsSetting returns the value of fips140 in a list of GODEBUG settings: that of the last one, as Go takes it.
func fipsSetting(list string) (value string) {
	for setting := range strings.SplitSeq(list, ",") {
		if v, ok := strings.CutPrefix(setting, "fips140="); ok {
			value = v
		}
	}
	return value
}

// onlyApproved requires that a server talks with a client that offers what FIPS 140-3 approves, and refuses clients that offer nothing of
// it.
func onlyApproved(ctx context.Context, address string) error {
	for _, offer := range []struct {
		what     string
		approved bool
		config   *tls.Config
	}{
		{"AES-GCM", true, &tls.Config{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{
			tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		}, CurvePreferences: []tls.CurveID{tls.CurveP256}}},
		{"ChaCha20-Poly1305", false, &tls.Config{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{
			tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
		}, CurvePreferences: []tls.CurveID{tls.CurveP256}}},
		{"X25519", false, &tls.Config{MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519}}},
	} {
		offer.config.InsecureSkipVerify = true // what matters is what the server takes; nothing is sent
		c, err := (&tls.Dialer{Config: offer.config}).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = c.Close()
		}
		said := new(net.OpError)
		switch {
		case offer.approved && err != nil:
			return fmt.Errorf("a TLS client with nothing but %s: %w", offer.what, err)
		case offer.approved:
		case err == nil:
			return fmt.Errorf("the API server takes a TLS client that offers nothing but %s", offer.what)
		case !errors.As(err, &said) || said.Op != "remote error":
			return fmt.Errorf("a TLS client with nothing but %s gets no answer: %w", offer.what, err)
		}
	}
	return nil
}
