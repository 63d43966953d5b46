package signature

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/child/childtest"
	"slipway.build/pkg/mechanism/needs"
)

func newKey(t *testing.T) PrivateKey {
	t.Helper()
	key, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t *testing.T, name string, data []byte, perm os.FileMode) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, data, perm); err != nil {
		t.Fatal(err)
	}
	return file
}

func secret(password string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte(password), nil }
}

func never() ([]byte, error) { return nil, errors.New("a password is asked for") }

func TestSignatureIsOfOneContentByOneKey(t *testing.T) {
	t.Parallel()
	for _, kind := range Types() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			key, err := NewOf(Type(kind))
			if err != nil {
				t.Fatal(err)
			}
			signatureIsOfOneContent(t, key)
		})
	}
	if _, err := NewOf("rsa"); err == nil {
		t.Error("a key of an unknown type is made")
	}
}

func signatureIsOfOneContent(t *testing.T, key PrivateKey) {
	other := newKey(t)
	data := []byte("sums\n")
	b, err := Sign(t.Context(), key, data)
	if err != nil {
		t.Fatal(err)
	}
	file, err := b.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Sign(t.Context(), key, data)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := again.Marshal(); err != nil || string(same) != string(file) {
		t.Errorf("the same key signs the same content as\n%sand\n%s%v", file, same, err)
	}
	if b, err = Unmarshal(file); err != nil {
		t.Fatal(err)
	}
	if err := b.Verify(key.Public(), data); err != nil {
		t.Error(err)
	}
	if err := VerifyBase64(key.Public(), data, b.Base64()); err != nil {
		t.Error(err)
	}
	if err := b.Verify(other.Public(), data); err == nil ||
		err.Error() != "it is by the key "+key.Public().Hint()+", want "+other.Public().Hint() {
		t.Errorf("another key: %v", err)
	}
	if err := b.Verify(key.Public(), []byte("sumS\n")); err == nil || err.Error() != "it is of another content" {
		t.Errorf("another content: %v", err)
	}
	if err := VerifyBase64(key.Public(), []byte("sumS\n"), b.Base64()); err == nil {
		t.Error("a signature is accepted of another content")
	}
	if err := VerifyBase64(key.Public(), data, []byte("?")); err == nil || !strings.Contains(err.Error(), "not one line of base64") {
		t.Errorf("no base64: %v", err)
	}
}

// Whatever a bundle says of itself, the signature and the content count.
func TestChangedBundlesAreRefused(t *testing.T) {
	t.Parallel()
	key, data := newKey(t), []byte("sums\n")
	b, err := Sign(t.Context(), key, data)
	if err != nil {
		t.Fatal(err)
	}
	file, err := b.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for i := range file {
		for bit := range 8 {
			changed := bytes.Clone(file)
			changed[i] ^= 1 << bit
			got, err := Unmarshal(changed)
			if err != nil || got.Verify(key.Public(), data) != nil {
				continue
			}
			// The case of the bundle's own names does not count.
			if !bytes.Equal(got.Message.Signature, b.Message.Signature) || !bytes.Equal(got.Message.Digest.Digest, b.Message.Digest.Digest) {
				t.Errorf("accepted with a change at %d: %s", i, changed)
			}
		}
	}
}

func TestWhatIsNoBundleIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "it is not a bundle",
		`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.2+json"}`: "not a bundle of the form " +
			"that is supported",
		`{"mediaType":"` + BundleType + `"}`: "neither a signature of a " +
			"message alone nor one of a statement alone",
		`{"mediaType":"` + BundleType + `","messageSignature":{"messageDigest":{"algorithm":"SHA1"}}}`: "its digest is by",
		strings.Repeat("[", MaxBundle):   "it is not a bundle",
		strings.Repeat(" ", MaxBundle+1): "too large",
		`{"mediaType":"` + BundleType + `","messageSignature":{"messageDigest":{"algorithm":"SHA2_256"}}} more`: "it is not a bundle",
	} {
		if _, err := Unmarshal([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: error %v, want one with %q", text, err, want)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	key, err := New()
	if err != nil {
		f.Fatal(err)
	}
	b, err := Sign(f.Context(), key, []byte("sums\n"))
	if err != nil {
		f.Fatal(err)
	}
	file, err := b.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Fuzz(func(t *testing.T, data []byte) {
		if b, err := Unmarshal(data); err == nil && b.Verify(key.Public(), []byte("others")) == nil {
			t.Error("accepted")
		}
	})
}

func TestKeysAreReadInEveryForm(t *testing.T) {
	t.Parallel()
	for _, kind := range Types() {
		key, err := NewOf(Type(kind))
		if err != nil {
			t.Fatal(err)
		}
		keyIsReadInEveryForm(t, key)
	}
}

func keyIsReadInEveryForm(t *testing.T, key PrivateKey) {
	t.Helper()
	private := key.signer.(local).key
	encrypted, err := key.Encrypted([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	var sec1 []byte
	if ec, ok := private.(*ecdsa.PrivateKey); ok {
		if sec1, err = x509.MarshalECPrivateKey(ec); err != nil {
			t.Fatal(err)
		}
	}
	block := func(kind string, data []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}) }
	parameters := block("EC PARAMETERS", []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7})
	for name, tt := range map[string]struct {
		data     []byte
		password func() ([]byte, error)
	}{
		"cosign's":  {encrypted, secret("secret")},
		"PKCS #8":   {block(pkcs8Type, pkcs8), never},
		"openssl's": {append(parameters, block(ecType, sec1)...), never},
	} {
		if name == "openssl's" && sec1 == nil {
			continue // which openssl has for ECDSA alone
		}
		got, err := ReadPrivate(t.Context(), write(t, "key", tt.data, 0o600), tt.password)
		if err != nil || got.Public().Hint() != key.Public().Hint() {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadPrivate(t.Context(), write(t, "key", encrypted, 0o600), secret("guess")); !errors.Is(err, ErrPassword) {
		t.Errorf("wrong password: %v", err)
	}
	public, err := ReadPublic(t.Context(), write(t, "key.pub", key.Public().PEM(), 0o644))
	if err != nil || public.Hint() != key.Public().Hint() {
		t.Errorf("public key: %v", err)
	}
}

func TestKeyIsReadFromAVariable(t *testing.T) {
	key := newKey(t)
	data, err := key.Encrypted([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("A_KEY", string(data))
	got, err := ReadPrivate(t.Context(), "env://A_KEY", secret("secret"))
	if err != nil || got.Public().Hint() != key.Public().Hint() {
		t.Error(err)
	}
	if _, err := ReadPrivate(t.Context(), "env://NO_KEY", never); err == nil || err.Error() != "env://NO_KEY: the variable is not set" {
		t.Errorf("no variable: %v", err)
	}
}

func TestKeysThatCannotBeUsedAreRefused(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	data, err := key.Encrypted([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p521, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		data []byte
		perm os.FileMode
		want string
	}{
		{data, 0o640, "others can read or write this private key (mode 0640): chmod 600 "},
		{data, 0o602, "others can read or write"},
		{[]byte("secret"), 0o600, "not a key in PEM's form"},
		{append(data, data...), 0o600, "more than one key"},
		{key.Public().PEM(), 0o600, "it is a public key"},
		{pem.EncodeToMemory(&pem.Block{Type: pkcs8Type, Bytes: p521}), 0o600, "not a key of ECDSA on the curve P-256 or P-384, nor of Ed25519"},
		{pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY"}), 0o600, "it holds a rsa private key, which is not supported"},
		{make([]byte, maxKey+1), 0o600, "too large"},
	} {
		file := write(t, "key", tt.data, tt.perm)
		if err := os.Chmod(file, tt.perm); err != nil { // the umask
			t.Fatal(err)
		}
		if _, err := ReadPrivate(t.Context(), file, secret("secret")); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want one with %q", err, tt.want)
		}
	}
	if _, err := ReadPublic(t.Context(), write(t, "key.pub", data, 0o600)); err == nil || !strings.Contains(err.Error(), "no public key") {
		t.Errorf("a private key as a public one: %v", err)
	}
}

func TestOpensslReadsKeysAndSignatures(t *testing.T) {
	t.Parallel()
	openssl := needs.Program(t, "openssl")
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		c := exec.Command(openssl, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			return fmt.Sprintf("%s: %v", out, err)
		}
		return string(out)
	}
	run("ecparam", "-genkey", "-name", "prime256v1", "-out", "theirs.key")
	if err := os.Chmod(filepath.Join(dir, "theirs.key"), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := ReadPrivate(t.Context(), filepath.Join(dir, "theirs.key"), never)
	if err != nil {
		t.Fatal(err)
	}
	data := []byte("sums\n")
	b, err := Sign(t.Context(), key, data)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(b.Base64())))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"sums": data, "sums.der": raw, "key.pub": key.Public().PEM()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := run("dgst", "-sha256", "-verify", "key.pub", "-signature", "sums.der", "sums"); got != "Verified OK\n" {
		t.Errorf("openssl says %s", got)
	}
	run("dgst", "-sha256", "-sign", "theirs.key", "-out", "theirs.der", "sums")
	theirs, err := os.ReadFile(filepath.Join(dir, "theirs.der"))
	if err != nil {
		t.Fatal(err)
	}
	if err := VerifyBase64(key.Public(), data, []byte(base64.StdEncoding.EncodeToString(theirs))); err != nil {
		t.Errorf("openssl's signature: %v", err)
	}
}

// beingPlugin is a variable by which the test program is a plugin.
const beingPlugin = "SIGNATURE_TEST_PLUGIN"

// TestMain is a plugin, if the environment says so: a key in a file, which the name leads to.
func TestMain(m *testing.M) {
	if os.Getenv(beingPlugin) == "" {
		os.Exit(m.Run())
	}
	if err := bePlugin(os.Args[1], os.Args[2]); err != nil {
		data, _ := json.Marshal(map[string]string{"errorMessage": err.Error()})
		fmt.Println(string(data))
		os.Exit(1)
	}
	os.Exit(0)
}

func bePlugin(version, text string) error {
	var request struct {
		Init struct {
			Version string      `json:"protocolVersion"`
			ID      string      `json:"keyResourceID"`
			Hash    crypto.Hash `json:"hashFunc"`
		} `json:"initOptions"`
		Method string `json:"methodName"`
	}
	if err := json.Unmarshal([]byte(text), &request); err != nil {
		return err
	}
	if version != "v1" || request.Init.Version != "v1" || request.Init.Hash != crypto.SHA256 {
		return fmt.Errorf("%s is another protocol, or %+v", version, request)
	}
	key, err := ReadPrivate(context.Background(), request.Init.ID, never)
	if err != nil {
		return err
	}
	switch request.Method {
	case "publicKey":
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"publicKey": map[string]any{"publicKeyPEM": key.Public().PEM()}})
	case "signMessage":
		data, err := io.ReadAll(os.Stdin)
		if err != nil {
			return err
		}
		signature, err := key.signer.sign(context.Background(), data)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"signMessage": map[string]any{"signature": signature}})
	}
	return errors.New("no method " + request.Method)
}

func TestPluginSigns(t *testing.T) {
	key := newKey(t)
	der, err := x509.MarshalPKCS8PrivateKey(key.signer.(local).key)
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, "key", pem.EncodeToMemory(&pem.Block{Type: pkcs8Type, Bytes: der}), 0o600)
	bin := t.TempDir()
	here, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"test":   beingPlugin + "=1 exec '" + here + "' \"$@\"",
		"silent": "exit 1",
		"odd":    "echo '{}'",
	} {
		childtest.Script(t, filepath.Join(bin, pluginPrefix+name), "#!/bin/sh\n"+script+"\n")
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	theirs, err := ReadPrivate(t.Context(), "test://"+file, never)
	if err != nil || theirs.Public().Hint() != key.Public().Hint() {
		t.Fatalf("key of the plugin: %v", err)
	}
	data := []byte("sums\n")
	b, err := Sign(t.Context(), theirs, data)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Verify(key.Public(), data); err != nil {
		t.Error(err)
	}
	public, err := ReadPublic(t.Context(), "test://"+file)
	if err != nil || public.Hint() != key.Public().Hint() {
		t.Errorf("public key of the plugin: %v", err)
	}
	if _, err := theirs.Encrypted(nil); err == nil {
		t.Error("a key that a plugin has is written")
	}
	other := newKey(t)
	if _, err := Sign(t.Context(), PrivateKey{other.Public(), theirs.signer}, data); err == nil ||
		!strings.Contains(err.Error(), "the signature that was made is wrong") {
		t.Errorf("a plugin that signs by another key: %v", err)
	}
	for name, want := range map[string]string{
		"none://x":        "no program sigstore-kms-none is in PATH",
		"silent://x":      "is not that of a plugin",
		"odd://x":         "no public key",
		"test:///missing": "sigstore-kms-test: open /missing: no such file",
	} {
		if _, err := ReadPrivate(t.Context(), name, never); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", name, err, want)
		}
	}
}

func FuzzPublicKey(f *testing.F) {
	key, err := New()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(key.Public().PEM())
	f.Fuzz(func(_ *testing.T, data []byte) {
		if public, err := ParsePublic(data); err == nil {
			_ = public.Hint()
		}
	})
}
