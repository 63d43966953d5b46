package gitsource

import (
	"encoding/pem"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A server's repository is fetched with the credentials that git's helpers have. Without them there is an error, and no question.
func TestRepositoryOfAServerIsFetched(t *testing.T) {
	r := newKubernetes(t)
	programs, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(programs)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(r.Dir), "GIT_HTTP_EXPORT_ALL=1"},
	}
	if _, err := os.Stat(backend.Path); err != nil {
		t.Skip("git has no git-http-backend: ", err)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, asked *http.Request) {
		if user, password, _ := asked.BasicAuth(); user != "me" || password != "secret" {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, asked)
	}))
	defer server.Close()
	certificate := filepath.Join(t.TempDir(), "server.pem")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(certificate, data, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_SSL_CAINFO", certificate)
	address := server.URL + "/" + filepath.Base(r.Dir)

	if _, err := Find(t.Context(), request(address)); err == nil || !strings.Contains(err.Error(), "could not read Username") {
		t.Errorf("without credentials: error %v", err)
	}
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "credential.helper")
	t.Setenv("GIT_CONFIG_VALUE_0", "!printf 'username=me\npassword=secret\n';:")
	found, err := Find(t.Context(), request(address, "v1.37.2"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	made, source, err := Make(t.Context(), found.Source, found.Version, dir)
	if err != nil {
		t.Fatal(err)
	}
	if source.Repository != address || source.Tree != r.Git("rev-parse", "HEAD^{tree}") || len(made) != 4 {
		t.Errorf("made %v of %+v", made, source)
	}
	os.Unsetenv("GIT_CONFIG_COUNT")
	if _, _, err := Make(t.Context(), found.Source, found.Version, dir); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("fetched without credentials: error %v", err)
	}
}
