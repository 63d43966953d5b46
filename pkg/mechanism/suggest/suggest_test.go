package suggest

import (
	"strings"
	"testing"
)

func TestNearNames(t *testing.T) {
	t.Parallel()
	components := []string{"kubelet", "kubectl", "kubectl", "kube-apiserver", "e2e.test", "e2e_node.test", "job", "pod", ""}
	for _, tt := range []struct{ name, want string }{
		{"kubctl", "kubectl"},
		{"KubeCTL", "kubectl"},
		{"kubelt", "kubelet"},
		{"apiserver", "kube-apiserver"},
		{"e2e", "e2e.test e2e_node.test"},
		{"foo", ""}, // two mistakes in three letters make another word
		{"jo", "job"},
		{"etcd", ""},
		{"", ""},
	} {
		if got := strings.Join(Near(tt.name, components), " "); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := strings.Join(Near("github.com/azure/sdk", []string{"github.com/Azure/sdk"}), " "); got != "github.com/Azure/sdk" {
		t.Errorf("names with capitals: got %q", got)
	}
}

func TestUnknownNameIsExplained(t *testing.T) {
	t.Parallel()
	many := strings.Fields("one two three four five six seven eight nine ten eleven twelve thirteen")
	for _, tt := range []struct {
		name  string
		names []string
		want  string
	}{
		{"locl", []string{"local", "container"}, `unknown road "locl"; did you mean local?`},
		{"rail", []string{"local", "container", "bazel"}, `unknown road "rail"; it can be local, container or bazel`},
		{"rail", many, `unknown road "rail"`},
		{"on", many, `unknown road "on"; did you mean one?`},
		{"rail", nil, `unknown road "rail"`},
	} {
		if got := Unknown("road", tt.name, tt.names).Error(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}
