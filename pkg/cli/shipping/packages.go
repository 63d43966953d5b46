package shipping

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/gpg"
	"slipway.build/pkg/mechanism/openpgp"
	"slipway.build/pkg/ship/publish"
)

// ofGPG begins the names of keys that gpg has.
const ofGPG = "gpg:"

// packageKeys returns the keys that sign repositories of packages, and says which expire soon. A name is a file, or gpg:FINGERPRINT.
func (o commands) packageKeys(ctx context.Context, names []string) (openpgp.Keys, error) {
	var keys openpgp.Keys
	for _, name := range names {
		var key *openpgp.Key
		var err error
		if fingerprint, ok := strings.CutPrefix(name, ofGPG); ok {
			key, err = gpg.Key(ctx, fingerprint)
		} else {
			key, err = o.packageKeyFile(name)
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	warnings, err := publish.CheckKeys(keys, o.Now())
	for _, w := range warnings {
		o.Say(w)
	}
	return keys, err
}

// packageKeyFile reads a private key.
func (o commands) packageKeyFile(file string) (*openpgp.Key, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("read the key of packages: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: others can read it (%s): chmod 600 %[1]s", file, info.Mode().Perm())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := openpgp.ReadPrivate(data, o.Password("Password of "+file))
	if err != nil {
		return nil, badrequest.Mark(fmt.Errorf("%s: %w", file, err))
	}
	return key, nil
}

// newPackageKey writes a key of OpenPGP: NAME.key and NAME.asc.
func (o commands) newPackageKey(user, name string, lifetime time.Duration) error {
	private, public := name+".key", name+".asc"
	if root, err := project.FindRoot(filepath.Dir(name)); err == nil {
		return badrequest.Mark(fmt.Errorf("%s would be one of the sources of %s, which every release holds: name a folder outside of "+
			"the tree", private, root))
	}
	for _, file := range []string{private, public} {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s exists: choose another name, or move it away", file)
		}
	}
	secret, open, err := openpgp.New(user, o.Now(), lifetime)
	if err != nil {
		return badrequest.Mark(err)
	}
	if err := errors.Join(create(private, secret, 0o600), create(public, open, 0o644)); err != nil {
		return err
	}
	key, err := openpgp.ReadPrivate(secret, nil)
	if err != nil {
		return err
	}
	if o.JSON {
		return o.PrintJSON(map[string]string{"key": key.Fingerprint(), "private": private, "public": public})
	}
	fmt.Fprintf(o.Out, "%s, for everybody, and %s, which no password protects: keep it secret. Key %s of %s\n", public, private,
		key.Fingerprint(), strings.TrimSpace(user))
	return nil
}
