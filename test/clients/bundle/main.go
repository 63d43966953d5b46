// Bundle checks, by sigstore-go and without network, that a bundle is a file's, by a public key, and if a certificate is named, that it has
// a timestamp of a server whose certificate that one has issued.
package main

import (
	"crypto"
	"fmt"
	"os"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

func main() {
	if len(os.Args) < 4 || len(os.Args) > 5 {
		fmt.Fprintln(os.Stderr, "usage: bundle KEY BUNDLE FILE [CERTIFICATE]")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]...); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
	fmt.Println("verified")
}

// believing is what is trusted, with a timestamp server.
type believing struct {
	root.TrustedMaterial
	server root.TimestampingAuthority
}

func (b believing) TimestampingAuthorities() []root.TimestampingAuthority {
	return []root.TimestampingAuthority{b.server}
}

func check(keyFile, bundleFile, file string, certificates ...string) error {
	pem, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey(pem)
	if err != nil {
		return err
	}
	key, err := signature.LoadVerifier(public, crypto.SHA256)
	if err != nil {
		return err
	}
	b, err := bundle.LoadJSONFromPath(bundleFile)
	if err != nil {
		return err
	}
	var trusted root.TrustedMaterial = root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(key, time.Time{}, time.Time{}), nil
	})
	how := verify.WithNoObserverTimestamps()
	for _, name := range certificates {
		pem, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		certificates, err := cryptoutils.UnmarshalCertificatesFromPEM(pem)
		if err != nil {
			return err
		}
		how = verify.WithSignedTimestamps(1)
		trusted = believing{trusted, &root.SigstoreTimestampingAuthority{Root: certificates[0], ValidityPeriodStart: certificates[0].NotBefore}}
	}
	verifier, err := verify.NewVerifier(trusted, how)
	if err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = verifier.Verify(b, verify.NewPolicy(verify.WithArtifact(f), verify.WithKey()))
	return err
}
