// Package relation reads relations between packages of an operating system, such as "kubernetes-cni >= 1.2.0". Debian and rpm mean the same
// by them and spell them differently; packages deb and rpm know how.
//
// What must never be in here: which packages there are.
package relation

import (
	"embed"
	"fmt"
	"regexp"
	"strings"

	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// The code is in keys: it decides what packages say of others.
var _ = recipe.Of("mechanism/relation", sources)

// A Relation names a package, in any version or in some.
type Relation struct {
	Name    string
	Op      string // <, <=, =, >= or >; empty: any version
	Version string // empty: any
}

var form = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9+._-]*)(?: (<|<=|=|>=|>) ((?:[0-9]+:)?[0-9][A-Za-z0-9.+~]*(?:-[A-Za-z0-9.+~]+)?))?$`)

// UnmarshalText reads "NAME" or "NAME >= VERSION".
func (r *Relation) UnmarshalText(text []byte) error {
	m := form.FindStringSubmatch(string(text))
	if m == nil {
		return fmt.Errorf("%q is not a package, as in iptables or iptables >= 1.4.21", text)
	}
	*r = Relation{m[1], m[2], m[3]}
	return nil
}

// MarshalText returns what UnmarshalText reads.
func (r Relation) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r Relation) String() string { return strings.TrimSpace(r.Name + " " + r.Op + " " + r.Version) }
