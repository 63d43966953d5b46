package bump

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.build/pkg/tree/module"
)

// Who raised a module for a fix must see that a bump takes it back.
func TestWhatABumpTakesBackIsNamed(t *testing.T) {
	t.Parallel()
	root := unpack(t, `
-- old/go.mod --
module example.com/old

go 1.26.0

require (
	example.com/newer v1.1.0 // indirect
	example.com/own v1.2.0
	example.com/raised v1.2.0 // indirect
	example.com/same v1.1.0 // indirect
	k8s.io/api v0.36.1
)

replace k8s.io/api => k8s.io/api v0.36.1

replace example.com/gone => example.com/gone v1.0.1

replace example.com/other => example.com/fork v1.0.0

replace example.com/folder => ../folder
-- new/go.mod --
module example.com/new

go 1.26.0

require (
	example.com/newer v1.2.0 // indirect
	example.com/own v1.2.0
	example.com/raised v1.1.0 // indirect
	example.com/same v1.0.0 // indirect
	k8s.io/api v0.36.2
)

replace k8s.io/api => k8s.io/api v0.36.2

replace example.com/other => example.com/fork v1.0.0

replace example.com/folder => ../folder
`)
	old, err := module.Load(root, "old")
	if err != nil {
		t.Fatal(err)
	}
	new, err := module.Load(root, "new")
	if err != nil {
		t.Fatal(err)
	}
	before := wanted{
		Versions: map[string]string{"example.com/newer": "v1.0.0", "example.com/raised": "v1.1.0", "example.com/same": "v1.1.0",
			"k8s.io/api": "v0.36.1"},
		Replace: []requirement{{Path: "k8s.io/api", Version: "v0.36.1"}},
	}
	want := []Move{
		{"example.com/raised in old", "v1.2.0", "v1.1.0", "old/go.mod had raised it from v1.1.0, and the bump takes upstream's"},
		{"replace of example.com/gone in old", "v1.0.1", "", "old/go.mod had it, and upstream has not"},
	}
	if diff := cmp.Diff(want, dropped(old, new, before, wanted{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
