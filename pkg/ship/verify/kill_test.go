package verify

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/sign"
)

// toSign and byKey are variables that make the test's program sign a folder.
const (
	toSign = "TEST_SIGN_FOLDER"
	byKey  = "TEST_SIGN_KEY"
)

// TestMain is signing in a process of its own, if the environment says so: again and again, until it is killed.
func TestMain(m *testing.M) {
	dir := os.Getenv(toSign)
	if dir == "" {
		os.Exit(m.Run())
	}
	key, err := signature.ReadPrivate(context.Background(), os.Getenv(byKey), nil)
	for err == nil {
		_, err = sign.Folder(context.Background(), dir, key, sign.Options{Replace: true})
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// killed signs a folder by a key's file, and kills that some time after the first signatures are there.
func killed(t *testing.T, dir, key string, after time.Duration) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), toSign+"="+dir, byKey+"="+key)
	var problem strings.Builder
	c.Stderr = &problem
	if err := os.RemoveAll(filepath.Join(dir, release.RootFile)); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		if _, err := os.Stat(filepath.Join(dir, release.RootFile)); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(after)
	_ = c.Process.Kill()
	if _ = c.Wait(); c.ProcessState.ExitCode() == 1 {
		t.Fatalf("signing fails: %s", &problem)
	}
}

// plainKey makes a private key without a password, which costs nothing to read.
func plainKey(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func TestKilledSigningLeavesWholeFiles(t *testing.T) {
	t.Parallel()
	dir, old, _ := signed(t)
	file := filepath.Join(t.TempDir(), "new.key")
	if err := os.WriteFile(file, plainKey(t), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := signature.ReadPrivate(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	contents := func() map[string]string {
		all := map[string]string{}
		for _, name := range signatureNames(t, dir) {
			all[name] = string(read(t, dir, name))
		}
		return all
	}
	byOld := contents()
	if _, err := sign.Folder(t.Context(), dir, key, sign.Options{Replace: true}); err != nil {
		t.Fatal(err)
	}
	byNew := contents()
	rest := 0
	const kills = 6
	for range kills {
		if _, err := sign.Folder(t.Context(), dir, old, sign.Options{Replace: true}); err != nil {
			t.Fatal(err)
		}
		killed(t, dir, file, time.Duration(mathrand.IntN(10_000))*time.Microsecond)
		for name, text := range contents() {
			if text != byOld[name] && text != byNew[name] {
				t.Errorf("%s is neither by the old key nor by the new one: %q", name, text)
			}
		}
		report, err := Contents(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if !report.OK() {
			rest++ // a temporary file
		}
		if err := sign.Sweep(dir); err != nil {
			t.Fatal(err)
		}
		if report, err = Contents(t.Context(), dir); err != nil || !report.OK() {
			t.Errorf("after it was swept: %+v, %v", report, err)
		}
	}
	t.Logf("%d of %d kills left a temporary file", rest, kills)
}
