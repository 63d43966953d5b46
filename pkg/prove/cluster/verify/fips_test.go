package verify

import (
	"crypto/tls"
	"net"
	"runtime/debug"
	"strings"
	"testing"

	"slipway.build/pkg/release"
)

func TestFIPSModeIsThatOfTheProcess(t *testing.T) {
	t.Parallel()
	const version = "v1.0.0-c2097c7c"
	built := func(version, mode string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "GOFIPS140", Value: version}, {Key: "DefaultGODEBUG", Value: mode}}
	}
	asks := release.FIPS{Version: version, Environment: true}
	for name, test := range map[string]struct {
		settings []debug.BuildSetting
		env      []string
		declared release.FIPS
		want     string // in the error
	}{
		"by default": {built(version, "fips140=on"), nil, release.FIPS{Version: version}, ""},
		"asked for":  {built(version, "fips140=on"), []string{"A=b", "GODEBUG=x=1,fips140=on"}, asks, ""},
		"only":       {built(version, "fips140=on"), []string{"GODEBUG=fips140=only"}, asks, ""},
		"compiled without": {nil, []string{"GODEBUG=fips140=on"}, asks,
			"compiled with GOFIPS140=, and release.json says v1.0.0-c2097c7c"},
		"compiled with another":             {built("v1.26.0", "fips140=on"), nil, asks, "GOFIPS140=v1.26.0"},
		"switched off":                      {built(version, "fips140=on"), []string{"GODEBUG=fips140=on,fips140=off"}, asks, `fips140 is "off"`},
		"go.mod switches it off":            {built(version, "fips140=off"), nil, release.FIPS{Version: version}, `fips140 is "off"`},
		"the environment should, and lacks": {built(version, "fips140=on"), []string{"GODEBUG=x=1"}, asks, "does not ask for FIPS mode"},
	} {
		err := inFIPSMode(test.settings, test.env, test.declared)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

func TestServersThatTakeWhatIsNotApprovedAreFound(t *testing.T) {
	t.Parallel()
	id := selfSigned("127.0.0.1")
	certificate := must(tls.X509KeyPair(id.certificate, id.key))
	approved := []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	for name, test := range map[string]struct {
		config *tls.Config
		want   string // in the error
	}{
		"only what is approved": {&tls.Config{CipherSuites: approved, CurvePreferences: []tls.CurveID{tls.CurveP256}}, ""},
		"everything":            {&tls.Config{}, "takes a TLS client that offers nothing but ChaCha20-Poly1305"},
		"another curve":         {&tls.Config{CipherSuites: approved}, "takes a TLS client that offers nothing but X25519"},
		"nothing": {&tls.Config{CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}},
			"a TLS client with nothing but AES-GCM: "},
	} {
		test.config.Certificates = []tls.Certificate{certificate}
		address := serveTLS(t, test.config)
		err := onlyApproved(t.Context(), address)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

func TestServerThatEndsConnectionsRefusesNothing(t *testing.T) {
	t.Parallel()
	id := selfSigned("127.0.0.1")
	config := &tls.Config{Certificates: []tls.Certificate{must(tls.X509KeyPair(id.certificate, id.key))}}
	// It ends the connection with a client that offers ChaCha20-Poly1305.
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		for _, suite := range hello.CipherSuites {
			if suite == tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 {
				return nil, hello.Conn.Close()
			}
		}
		return nil, nil
	}
	if err := onlyApproved(t.Context(), serveTLS(t, config)); err == nil || !strings.Contains(err.Error(), "gets no answer") {
		t.Errorf("error %v", err)
	}
}

// serveTLS serves handshakes, and returns the address.
func serveTLS(t *testing.T, config *tls.Config) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = tls.Server(c, config).Handshake()
				_ = c.Close()
			}()
		}
	}()
	return listener.Addr().String()
}
