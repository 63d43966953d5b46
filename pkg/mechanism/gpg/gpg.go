// Package gpg asks the program gpg for signatures by keys that it has: by its agent, on a card, wherever its configuration says.
//
// gpg finds its folder as it always does (GNUPGHOME). Its agent asks people for passphrases and PINs; they never pass through this process.
//
// What must never be in here: what is signed.
package gpg

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/mechanism/openpgp"
)

// program is what is run. Debian's package gnupg has it, and its agent.
const program = "gpg"

// Key returns the key with a fingerprint, whose private part stays with gpg. It asks for nothing but the public key now.
func Key(ctx context.Context, fingerprint string) (*openpgp.Key, error) {
	name := strings.TrimPrefix(strings.ToUpper(strings.ReplaceAll(fingerprint, " ", "")), "0X") // gpg --fingerprint prints blanks
	if id, err := hex.DecodeString(name); err == nil && 0 < len(id) && len(id) < 20 {
		return nil, badrequest.Mark(fmt.Errorf("%q is the short name of a key, and others can make a key with the same: "+
			"name all 40 digits of its fingerprint, as gpg --fingerprint prints it", fingerprint))
	} else if err != nil || len(name) != 40 {
		return nil, badrequest.Mark(fmt.Errorf("%q is no fingerprint of a key, which has 40 hexadecimal digits, as gpg --fingerprint "+
			"prints it", fingerprint))
	}
	public, err := call(ctx, nil, "--no-armor", "--export-options", "export-minimal,no-export-attributes", "--export", name)
	if err != nil {
		return nil, fmt.Errorf("read the public key %s: %w", name, err)
	}
	if len(public) == 0 {
		return nil, fmt.Errorf("gpg has no public key %s: import it, or set GNUPGHOME to the folder of gpg that has it", name)
	}
	key, err := openpgp.Elsewhere(public, func(ctx context.Context, content []byte, text bool) ([]byte, error) {
		return sign(ctx, name, content, text)
	})
	if err != nil {
		return nil, fmt.Errorf("the public key %s of gpg: %w: only what is valid now counts: check the clock, and the key's users",
			name, err)
	}
	if primary := key.Fingerprint(); primary != name {
		return nil, badrequest.Mark(fmt.Errorf("%s is a part of a key: name the whole, %s", name, primary))
	}
	return key, nil
}

// sign asks for a signature. gpg chooses the part of the key that signs, and the digest if the key leaves no choice.
func sign(ctx context.Context, name string, content []byte, text bool) ([]byte, error) {
	mode := "--no-textmode"
	if text {
		mode = "--textmode"
	}
	signature, err := call(ctx, content, "--no-armor", mode, "--personal-digest-preferences", "SHA256", "--local-user", name,
		"--detach-sign")
	if err != nil {
		return nil, fmt.Errorf("sign with the key %s: %w", name, err)
	}
	return signature, nil
}

// call runs gpg, and returns what it prints.
func call(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, append([]string{"--batch", "--no-tty", "--quiet"}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &said
	err := child.Run(cmd, syscall.SIGTERM, nil)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("no program gpg is in PATH: install it, on Debian the package gnupg")
	case err != nil:
		return nil, explain(said.String(), err)
	}
	return out.Bytes(), nil
}

// remedies say what helps, by what gpg says.
var remedies = map[string]string{
	"No secret key":       "import the private key, insert the card that has it, or set GNUPGHOME to the folder of gpg that has it",
	"Operation cancel":    "run the same again, and give the passphrase or the PIN",
	"Inappropriate ioctl": "its agent has no terminal to ask for the passphrase: set GPG_TTY to the output of tty",
	"No pinentry":         "its agent has no program to ask for the passphrase: install one, on Debian such as the package pinentry-curses",
	"Timeout":             "run the same again, and give the passphrase or the PIN in time",
	"Bad PIN":             "run the same again, with the PIN of the card",
	"Bad passphrase":      "run the same again, with the passphrase of the key",
}

// explain returns an error of what gpg has said last.
func explain(said string, err error) error {
	last := err.Error()
	for line := range strings.Lines(said) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "gpg: "); ok {
			last = text
		}
	}
	for words, remedy := range remedies {
		if strings.Contains(last, words) {
			return fmt.Errorf("gpg: %s: %s", last, remedy)
		}
	}
	return fmt.Errorf("gpg: %s: try gpg --detach-sign by hand, and run the same again when that works", last)
}
