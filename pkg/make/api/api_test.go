package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/recipe/recipetest"
)

// TestMain makes the test's program etcd or kube-apiserver if it is called so.
func TestMain(m *testing.M) {
	program, flags := filepath.Base(os.Args[0]), map[string]string{}
	for _, arg := range os.Args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		flags[name] = value
	}
	var err error
	switch program {
	case "etcd":
		http.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
		err = http.ListenAndServe(strings.TrimPrefix(flags["--listen-client-urls"], "http://"), nil)
	case "kube-apiserver":
		err = fakeAPIServer(flags)
	default:
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// fakeAPIServer answers with the path, to clients with the right token, if its etcd serves.
func fakeAPIServer(flags map[string]string) error {
	if _, err := http.Get(flags["--etcd-servers"] + "/health"); err != nil {
		return err
	}
	if got := os.Environ(); !slices.Equal(got, []string{"KUBE_APISERVER_STRICT_REMOVED_API_HANDLING_IN_ALPHA=true"}) {
		return fmt.Errorf("environment %q", got)
	}
	tokens, err := os.ReadFile(flags["--token-auth-file"])
	if err != nil {
		return err
	}
	token, _, _ := strings.Cut(string(tokens), ",")
	handle := func(path, text string) {
		http.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+token {
				w.WriteHeader(http.StatusUnauthorized)
			} else if accept, want := r.Header.Get("Accept"), "as=APIGroupDiscoveryList"; path == "/apis" && strings.Contains(accept, want) {
				fmt.Fprint(w, `{"aggregated": true}`)
			} else {
				fmt.Fprint(w, text)
			}
		})
	}
	http.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	handle("/openapi/v2", `{"swagger":"2.0","info":{"title":"K","version":"v1"},"paths":{}}`)
	handle("/openapi/v3", `{"paths":{"version":{},"apis":{},"apis/apps/v1":{}}}`)
	for _, group := range []string{"version", "apis", "apis/apps/v1"} {
		handle("/openapi/v3/"+group, `{"info":{"version":"v1"},"of":"`+group+`"}`)
	}
	handle("/apis", `{"b":[1,{}],"a":"<&>"}`)
	handle("/apis/apps/v1", `{}`)
	return http.ListenAndServeTLS("127.0.0.1:"+flags["--secure-port"], flags["--tls-cert-file"], flags["--tls-private-key-file"], nil)
}

func TestFilesAreWhatTheAPIServerAnswers(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.Symlink(self, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	g := action.Graph{Root: root, State: "state", Actions: []*action.Action{Action(root, Spec{"kube-apiserver", "etcd", "api"})}}
	if err := g.Run(t.Context(), action.Options{}); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	api := os.DirFS(filepath.Join(root, "api"))
	err = fs.WalkDir(api, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(api, name)
		got[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	of := func(group string) string {
		return "{\n  \"info\": {\n    \"version\": \"unversioned\"\n  },\n  \"of\": \"" + group + "\"\n}\n"
	}
	want := map[string]string{
		"discovery/aggregated_v2.json":  "{\n  \"aggregated\": true\n}\n",
		"discovery/apis.json":           "{\n  \"a\": \"<&>\",\n  \"b\": [\n    1,\n    {}\n  ]\n}\n",
		"discovery/apis__apps__v1.json": "{}\n",
		"openapi-spec/swagger.json": "{\n  \"info\": {\n    \"title\": \"K\",\n    \"version\": \"unversioned\"\n  },\n" +
			"  \"paths\": {},\n  \"swagger\": \"2.0\"\n}\n",
		"openapi-spec/v3/apis__apps__v1_openapi.json": of("apis/apps/v1"),
		"openapi-spec/v3/apis_openapi.json":           of("apis"),
		"openapi-spec/v3/version_openapi.json":        of("version"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestProgramThatDoesNotStartIsAnError(t *testing.T) {
	t.Parallel()
	err := programs{"/nowhere/kube-apiserver", "/nowhere/etcd"}.write(context.Background(), t.TempDir(), t.TempDir())
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestEveryFieldOfASpecIsInItsRecipe(t *testing.T) {
	t.Parallel()
	recipetest.EachField(t, Spec{})
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	const number = "9007199254740993"
	if got, err := format([]byte(`{"n":`+number+`}`), false); err != nil || !strings.Contains(string(got), number) {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := format([]byte(`{}`), true); err == nil {
		t.Error("an OpenAPI document without info is no error")
	}
}
