package verify

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// What API servers leave behind: the audit log, and what etcd has.
var writtenChecks = []Check{
	{Name: "audit", Needs: []string{kubelet}, run: audit},
	{Name: "encryption", Needs: []string{kubelet}, run: encryption},
	{Name: "snapshot", Needs: []string{kubelet}, run: snapshot},
}

// The audit log says who has asked for what, and with what result, and never what was in a Secret.
func audit(e *env) {
	const word = "open-sesame"
	e.kubectl("create", "secret", "generic", "seen", "--from-literal=word="+word)
	nobody := "system:serviceaccount:" + e.namespace + ":default"
	e.refused("orbidden", "delete", "secret", "seen", "--as="+nobody)
	want := []string{"create by kubernetes-admin: 201", "delete by " + nobody + ": 403"}
	e.until(func() {
		got := map[string]bool{}
		for _, n := range e.nodes {
			text, err := os.ReadFile(e.NodeFile(n.Name, "var-log", "audit", "audit.log"))
			if errors.Is(err, os.ErrNotExist) {
				continue // it has no API server
			}
			noError(err)
			if bytes.Contains(text, []byte(word)) {
				fail("the audit log has the content of a Secret")
			}
			audited(text, e.namespace, "seen", got)
		}
		for _, event := range want {
			if !got[event] {
				fail("the audit log has %v for the Secret, and not %q", got, event)
			}
		}
	})
}

// audited adds what an audit log has about an object.
func audited(log []byte, namespace, name string, to map[string]bool) {
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb                   string
			User, ImpersonatedUser struct{ Username string }
			ObjectRef              struct{ Namespace, Name string }
			ResponseStatus         struct{ Code int }
		}
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.ObjectRef.Namespace != namespace || event.ObjectRef.Name != name {
			continue // the last line may not be whole
		}
		user := event.User.Username
		if event.ImpersonatedUser.Username != "" {
			user = event.ImpersonatedUser.Username
		}
		to[fmt.Sprintf("%s by %s: %d", event.Verb, user, event.ResponseStatus.Code)] = true
	}
}

// etcd has Secrets encrypted, and other objects as they are.
func encryption(e *env) {
	const word = "open-sesame"
	e.kubectl("create", "secret", "generic", "word", "--from-literal=word="+word)
	e.kubectl("create", "configmap", "word", "--from-literal=word="+word)
	stored := func(kind string) string {
		return e.etcdctl("get", "--print-value-only", "/registry/"+kind+"/"+e.namespace+"/word")
	}
	if secret := stored("secrets"); !strings.HasPrefix(secret, "k8s:enc:secretbox:v1:") || strings.Contains(secret, word) {
		fail("etcd has the Secret as %.40q", secret)
	}
	if plain := stored("configmaps"); !strings.Contains(plain, word) {
		fail("etcd has the ConfigMap as %.40q", plain)
	}
}
