package shipping

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/ship/sign"
	"slipway.build/pkg/ship/trust"
)

func newTrust(o commands) *cobra.Command {
	c := &cobra.Command{
		Use:   "trust",
		Short: "Say in a file whose signatures count, and when",
		Long: `trust writes and signs a file, by convention trust.json, that says by which keys releases are signed: from when until when each is
valid, which are revoked, and which timestamp servers are believed. Users verify releases by it with "slipway verify --trust".

A key of its own signs the file, which need not be at hand when releases are signed. A change is a new version: publish it signed.`,
		Example: "  slipway trust set trust.json --key release.pub --until 2027-12-01\n  slipway trust sign trust.json --key root.key\n" +
			"  slipway verify --trust trust.json --key root.pub",
		Args: session.OnlySubcommands,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newTrustSet(o), newTrustSign(o))
	return c
}

// A trustChange is what a user wants of a file of trusted keys.
type trustChange struct {
	keys, roots          []string
	from, until, expires string
	revoke, since        string
	threshold            int
}

func newTrustSet(o commands) *cobra.Command {
	var t trustChange
	c := &cobra.Command{
		Use:   "set file",
		Short: "Change a file of trusted keys, or make it",
		Long: `set adds keys to a file, or changes when those in it are valid, and raises its version. It makes the file if there is none.

--until says when a key expires. Signatures with a timestamp from before that still count, if --timestamp-root names the server's root
certificate. --revoke REASON says that a key's signatures count no longer; those with a timestamp from before --since still do.

Times are days, which begin in UTC, or as in 2027-12-01T15:00:00Z.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f := &trust.File{Threshold: 1}
			data, err := os.ReadFile(args[0])
			switch {
			case err == nil:
				if f, err = trust.Parse(data); err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
			case !errors.Is(err, fs.ErrNotExist):
				return err
			}
			if err := t.apply(c, f); err != nil {
				return err
			}
			f.Version++
			if data, err = f.Marshal(); err != nil {
				return err
			}
			if _, err := trust.Parse(data); err != nil {
				return badrequest.Mark(err)
			}
			if err := atomicfile.WriteFile(args[0], data, 0o644); err != nil {
				return err
			}
			fmt.Fprintf(o.Out, "%s: version %d, %s, not signed\n", args[0], f.Version, session.Count(len(f.Keys), "key"))
			return nil
		},
	}
	f := c.Flags()
	f.StringArrayVar(&t.keys, "key", nil, "the public key: a `file`, env://VARIABLE, or NAME://ID of a plugin; may be repeated")
	f.StringVar(&t.from, "from", "", "when the keys begin to be valid")
	f.StringVar(&t.until, "until", "", "when the keys are valid no longer")
	f.StringVar(&t.revoke, "revoke", "", "the `reason` for which the keys are revoked")
	f.StringVar(&t.since, "since", "", "with --revoke: signatures with a timestamp from before this time still count")
	f.StringVar(&t.expires, "expires", "", "when the file itself must not be used any longer")
	f.IntVar(&t.threshold, "threshold", 1, "how many of the keys' owners must have signed a release")
	f.StringArrayVar(&t.roots, "timestamp-root", nil, "a `file` with the root certificate of a timestamp server; may be repeated")
	return c
}

func (t *trustChange) apply(c *cobra.Command, f *trust.File) error {
	for _, name := range []string{"from", "until", "revoke", "since", "expires"} {
		if f := c.Flags().Lookup(name); f.Changed && f.Value.String() == "" { // a variable that is not set: the key would stay valid
			return badrequest.Mark(fmt.Errorf("--%s has no value", name))
		}
	}
	if len(t.keys)+len(t.roots) == 0 && t.from+t.until+t.revoke+t.since+t.expires == "" && !c.Flags().Changed("threshold") {
		return badrequest.Mark(errors.New("there is nothing to change: name a key by --key, or what else is to be set"))
	}
	if len(t.keys) == 0 && (t.from != "" || t.until != "" || t.revoke != "" || t.since != "") {
		return badrequest.Mark(errors.New("name the key by --key"))
	}
	if t.since != "" && t.revoke == "" {
		return badrequest.Mark(errors.New("--since: say why the key is revoked by --revoke"))
	}
	for _, name := range t.keys {
		public, err := signature.ReadPublic(c.Context(), name)
		if err != nil {
			return fmt.Errorf("read the key: %w", err)
		}
		key := f.Key(public)
		if err := errors.Join(setTime(&key.From, "from", t.from), setTime(&key.Until, "until", t.until)); err != nil {
			return err
		}
		if t.revoke != "" {
			key.Revoked = &trust.FileRevocation{Reason: t.revoke}
			if err := setTime(&key.Revoked.Since, "since", t.since); err != nil {
				return err
			}
		}
	}
	if c.Flags().Changed("threshold") {
		f.Threshold = t.threshold
	}
	for _, name := range t.roots {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := f.Believe(data); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return setTime(&f.Expires, "expires", t.expires)
}

// setTime sets a time to the value of a flag that is given.
func setTime(to **time.Time, flag, value string) error {
	if value == "" {
		return nil
	}
	at, err := time.Parse(time.DateOnly, value)
	if err != nil {
		if at, err = time.Parse(time.RFC3339, value); err != nil {
			return badrequest.Mark(fmt.Errorf("--%s %q: want a day such as 2027-12-01, or a time such as 2027-12-01T15:00:00Z", flag, value))
		}
	}
	at = at.UTC()
	*to = &at
	return nil
}

func newTrustSign(o commands) *cobra.Command {
	var key string
	var options sign.Options
	c := &cobra.Command{
		Use:   "sign file",
		Short: "Sign a file of trusted keys",
		Long: `sign signs a file of trusted keys: FILE.sigstore.json is the signature as a bundle, and FILE.sig alone. Signatures by more keys go
below the folder signatures beside it, with --add. Publish them with the file.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if key == "" {
				return badrequest.Mark(errors.New("name a private key: --key ~/root.key; slipway keys new makes one"))
			}
			data, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			f, err := trust.Parse(data)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			private, err := signature.ReadPrivate(c.Context(), key, o.Password("Password of "+key))
			if err != nil {
				return fmt.Errorf("read the key: %w", err)
			}
			if _, err := sign.Single(c.Context(), args[0], private, options); err != nil {
				return err
			}
			fmt.Fprintf(o.Out, "version %d of %s is signed by the key %s\n", f.Version, args[0], private.Public().Hint())
			return nil
		},
	}
	c.Flags().BoolVar(&options.Add, "add", false, "also sign a file that another key has signed, beside the signatures by that key")
	c.Flags().StringVar(&key, "key", "", "the private key: a `file`, env://VARIABLE, or NAME://ID of a plugin")
	return c
}
