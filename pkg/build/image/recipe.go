package image

import (
	"crypto/sha256"
	"embed"
	"fmt"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"slipway.build/pkg/mechanism/archive"
	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// Recipe stands for everything that decides an image's bytes besides its Spec and the files this names: two programs
// with the same Recipe make the same images. It belongs into the key of an action that makes one.
var Recipe = recipe.Of(sources, "github.com/google/go-containerregistry") + " " + archive.Recipe + " " + rootsSum()

// rootsSum sums the certificates themselves: only programs built by the Go command say which version they have.
func rootsSum() string {
	h := sha256.New()
	for r := range bundle.Roots() {
		fmt.Fprintf(h, "root %d %t\n%s", len(r.Certificate), r.Constraint != nil, r.Certificate)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
