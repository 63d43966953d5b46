package image

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// certificates returns Mozilla's set of root certificates as PEM, sorted by name, each below a comment with name and sum.
// Roots that are trusted only for certificates issued before some date are left out: the file cannot say so.
func certificates() ([]byte, error) {
	var roots []*x509.Certificate
	for r := range bundle.Roots() {
		if r.Constraint != nil {
			continue
		}
		c, err := x509.ParseCertificate(r.Certificate)
		if err != nil {
			return nil, fmt.Errorf("parse root certificate: %w", err)
		}
		roots = append(roots, c)
	}
	slices.SortFunc(roots, func(a, b *x509.Certificate) int {
		return cmp.Or(cmp.Compare(holder(a), holder(b)), bytes.Compare(a.Raw, b.Raw))
	})
	var out bytes.Buffer
	for i, c := range roots {
		if i > 0 {
			out.WriteByte('\n')
		}
		sum := sha256.Sum256(c.Raw)
		fmt.Fprintf(&out, "# %s\n# SHA-256 %s\n", holder(c), hex.EncodeToString(sum[:]))
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// holder names a root for readers. pkix.Name's String would differ between Go versions for the rarer attributes, and the
// file must not.
func holder(c *x509.Certificate) string {
	parts := append([]string{c.Subject.CommonName}, c.Subject.OrganizationalUnit...)
	parts = append(parts, c.Subject.Organization...)
	parts = append(parts, c.Subject.Country...)
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, ", ")
}
