package verify

import (
	"bufio"
	"bytes"
	"context"
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
func audit(ctx context.Context, e *env) error {
	const word = "open-sesame"
	if _, err := e.kubectl(ctx, "create", "secret", "generic", "seen", "--from-literal=word="+word); err != nil {
		return err
	}
	nobody := "system:serviceaccount:" + e.namespace + ":default"
	if err := e.refused(ctx, "orbidden", "", "delete", "secret", "seen", "--as="+nobody); err != nil {
		return err
	}
	want := map[string]string{"create by kubernetes-admin: 201": "", "delete by " + nobody + ": 403": ""}
	return until(ctx, func() error {
		got := map[string]bool{}
		for _, n := range e.nodes {
			text, err := os.ReadFile(e.NodeFile(n.Name, "var-log", "audit", "audit.log"))
			if errors.Is(err, os.ErrNotExist) {
				continue // it has no API server
			}
			if err != nil {
				return err
			}
			if bytes.Contains(text, []byte(word)) {
				return errors.New("the audit log has the content of a Secret")
			}
			audited(text, e.namespace, "seen", got)
		}
		for event := range want {
			if !got[event] {
				return fmt.Errorf("the audit log has %v for the Secret, and not %q", got, event)
			}
		}
		return nil
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
func encryption(ctx context.Context, e *env) error {
	const word = "open-sesame"
	for _, kind := range [][]string{{"secret", "generic"}, {"configmap"}} {
		command := append(append([]string{"create"}, kind...), "word", "--from-literal=word="+word)
		if _, err := e.kubectl(ctx, command...); err != nil {
			return err
		}
	}
	stored := func(kind string) (string, error) {
		return e.etcdctl(ctx, "get", "--print-value-only", "/registry/"+kind+"/"+e.namespace+"/word")
	}
	secret, err := stored("secrets")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(secret, "k8s:enc:secretbox:v1:") || strings.Contains(secret, word) {
		return fmt.Errorf("etcd has the Secret as %.40q", secret)
	}
	plain, err := stored("configmaps")
	if err == nil && !strings.Contains(plain, word) {
		err = fmt.Errorf("etcd has the ConfigMap as %.40q", plain)
	}
	return err
}
