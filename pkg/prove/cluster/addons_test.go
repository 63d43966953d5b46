package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnknownAddonHasTheNamesOfThoseThereAre(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, file := range []string{"storage/class.yaml", "storage/config/crd/crd.yaml", "hello/hello.yaml", "images/csi-disk.tar"} {
		file = filepath.Join(dir, addonsFolder, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := known(dir, "storage"); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"stroage": "did you mean storage?", "images": "it can be hello or storage"} {
		if err := known(dir, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestOneAppliedObjectIsReadAsSeveralAre(t *testing.T) {
	t.Parallel()
	const one = `{"kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}}`
	for _, text := range []string{one, `{"kind": "List", "items": [` + one + `]}`} {
		objects, err := readApplied(text)
		if err != nil || len(objects) != 1 || objects[0].Kind != "Deployment" || objects[0].Metadata.Name != "web" ||
			objects[0].Metadata.Namespace != "default" {
			t.Errorf("%s: %+v, %v", text, objects, err)
		}
	}
}
