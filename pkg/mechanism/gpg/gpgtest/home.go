// Package gpgtest makes folders of gpg for tests, with keys, and with agents that end with the test.
//
// What must never be in here: what is signed.
package gpgtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/child/childtest"
	"slipway.build/pkg/mechanism/needs"
)

// A Home is a folder of gpg, for the variable GNUPGHOME.
type Home string

// New makes a folder whose agent asks a program for passphrases. That counts its questions, and answers with a passphrase, or cancels if it
// is empty. The test is skipped if there is no gpg.
func New(t testing.TB, passphrase string) Home {
	t.Helper()
	needs.Program(t, "gpg")
	needs.Program(t, "gpg-agent")
	h := Home(t.TempDir())
	if err := os.Chmod(string(h), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Stop(t) })
	answer := "echo 'ERR 83886179 canceled <Pinentry>'"
	if passphrase != "" {
		answer = "echo D " + passphrase + "; echo OK"
	}
	childtest.Script(t, h.Path("pinentry"), fmt.Sprintf(`#!/bin/sh
echo OK
while read -r command rest; do
	case $command in
	GETPIN) echo >>%s; %s ;;
	*) echo OK ;;
	esac
done
`, h.Path("asked"), answer))
	h.Write(t, "gpg-agent.conf", "s2k-count 65536\npinentry-program "+h.Path("pinentry")+"\n")
	return h
}

// Path returns the path of a file in the folder.
func (h Home) Path(name string) string { return filepath.Join(string(h), name) }

// Write writes a file in the folder.
func (h Home) Write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(h.Path(name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Stop ends the agent, which forgets all passphrases. The next use starts another one.
func (h Home) Stop(t testing.TB) {
	t.Helper()
	if out, err := exec.Command("gpgconf", "--homedir", string(h), "--kill", "all").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// Asked returns how often the agent has asked for a passphrase.
func (h Home) Asked() int {
	data, _ := os.ReadFile(h.Path("asked"))
	return bytes.Count(data, []byte("\n"))
}

// Run runs gpg, and returns what it prints.
func (h Home) Run(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command("gpg", append([]string{"--homedir", string(h), "--batch", "--no-tty", "--pinentry-mode", "loopback"}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("gpg %q: %v, %s", args, err, &said)
	}
	return string(out)
}

// Add makes a key for signatures of a kind, such as ed25519, and returns its fingerprint. The lifetime is such as 2y, or never.
func (h Home) Add(t testing.TB, user, passphrase, kind, lifetime string, more ...string) string {
	t.Helper()
	h.Run(t, append(more, "--passphrase", passphrase, "--quick-gen-key", user, kind, "sign", lifetime)...)
	return h.Fingerprints(t, user)[0]
}

// Fingerprints returns those of a user's key and of its parts.
func (h Home) Fingerprints(t testing.TB, user string) (all []string) {
	t.Helper()
	for line := range strings.Lines(h.Run(t, "--with-colons", "--list-keys", user)) {
		if fields := strings.Split(line, ":"); fields[0] == "fpr" {
			all = append(all, fields[9])
		}
	}
	return all
}

// Revoke revokes a key.
func (h Home) Revoke(t testing.TB, fingerprint string) {
	t.Helper()
	certificate, err := os.ReadFile(h.Path("openpgp-revocs.d/" + fingerprint + ".rev"))
	if err != nil {
		t.Fatal(err)
	}
	h.Write(t, "revoked", strings.ReplaceAll(string(certificate), ":-----BEGIN", "-----BEGIN")) // the colon keeps it from being used
	h.Run(t, "--import", h.Path("revoked"))
}
