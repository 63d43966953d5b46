package bump

import "testing"

func TestOnlyAnAnswerOfAProxyMakesAVersionMissing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"reading http://127.0.0.1/k8s.io/api/@v/v0.36.9.info: 404 Not Found":                                                  true,
		"reading http://127.0.0.1/k8s.io/api/@v/v0.36.9.info: 403 Forbidden\n\tserver response: refused":                      true,
		"reading http://127.0.0.1/k8s.io/api/@v/v0.36.9.info: 410 Gone":                                                       true,
		"invalid version: unknown revision v0.36.9":                                                                           true,
		"module k8s.io/api: no matching versions for query \"latest\"":                                                        true,
		"reading file:///proxy/k8s.io/api/@v/v0.36.9.info: open /proxy/k8s.io/api/@v/v0.36.9.info: no such file or directory": true,

		"Get \"http://127.0.0.1:1/k8s.io/api/@v/v0.36.9.info\": dial tcp 127.0.0.1:1: connect: connection refused": false,
		"reading http://127.0.0.1/k8s.io/api/@v/v0.36.9.info: 502 Bad Gateway":                                     false,
		"dial tcp: lookup proxy.example.com: no such host":                                                         false,
		"exec: \"git\": executable file not found in $PATH":                                                        false,
	} {
		if got := absent(text); got != want {
			t.Errorf("absent(%q) is %v", text, got)
		}
	}
}
