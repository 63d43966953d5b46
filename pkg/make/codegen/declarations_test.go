package codegen

import (
	"strings"
	"testing"
)

func TestSameDeclarations(t *testing.T) {
	const file = `// Package p.
package p

import "fmt"

// +k8s:deepcopy-gen=true
type T struct{ A int }

func (t T) F() { fmt.Println(t) }
`
	for name, tt := range map[string]struct {
		now  string
		want bool
	}{
		"nothing": {file, true},
		"a body":  {strings.ReplaceAll(file, "fmt.Println(t)", "fmt.Print(t, 1)\n\t// a comment\n"), true},
		"a new import": {strings.NewReplacer(`import "fmt"`, "import (\n\t\"fmt\"\n\t\"os\"\n)", "fmt.Println(t)", "os.Exit(1)").Replace(file),
			true},
		"no import":     {strings.ReplaceAll(strings.ReplaceAll(file, `import "fmt"`, ""), "fmt.Println(t)", ""), true},
		"other import":  {strings.ReplaceAll(file, `"fmt"`, `fmt "log"`), false},
		"dot import":    {strings.ReplaceAll(file, `"fmt"`, `. "fmt"`), false},
		"a field":       {strings.ReplaceAll(file, "A int", "A int32"), false},
		"a marker":      {strings.ReplaceAll(file, "deepcopy-gen=true", "deepcopy-gen=false"), false},
		"a signature":   {strings.ReplaceAll(file, "F()", "F(int)"), false},
		"a comment":     {strings.ReplaceAll(file, "// Package p.", "// Package q."), false},
		"a declaration": {file + "\nfunc (t T) G() {}\n", false},
		"no Go":         {"package", false},
	} {
		if got := sameDeclarations([]byte(file), []byte(tt.now)); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
