package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestCertificatesAreSignedByTheAuthority(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pki")
	a, err := newAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.server("apiserver", "kubernetes"); err != nil {
		t.Fatal(err)
	}
	if err := a.client("admin", "kubernetes-admin", "system:masters"); err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("ca.crt has no certificate")
	}
	leaf := func(name string) *x509.Certificate {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf
	}
	for _, name := range []string{"kubernetes", "localhost", "127.0.0.1", "10.96.0.1"} {
		if _, err := leaf("apiserver").Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Error(err)
		}
	}
	client := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := leaf("admin").Verify(client); err != nil {
		t.Error(err)
	}
	if s := leaf("admin").Subject; s.CommonName != "kubernetes-admin" || len(s.Organization) != 1 || s.Organization[0] != "system:masters" {
		t.Errorf("the administrator is %v", s)
	}
	if _, err := leaf("admin").Verify(x509.VerifyOptions{Roots: roots}); err == nil {
		t.Error("the administrator's certificate could be a server's")
	}
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others can read %s: %v, %v", name, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
