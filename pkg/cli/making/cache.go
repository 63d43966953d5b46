package making

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/console"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/modproxy"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/reapi"
	"slipway.build/pkg/mechanism/reapi/credentials"
	"slipway.build/pkg/mechanism/sharedcache"
	"slipway.build/pkg/mechanism/signature"
	"slipway.build/pkg/tree/catalog"
)

// cacheFlags choose the shared cache of a command that makes something.
type cacheFlags struct {
	url    string
	none   bool
	upload bool
}

const cacheURLForm = "grpc[s]://HOST[:PORT][/INSTANCE] (default $SLIPWAY_CACHE, else that of release.yaml)"

// addCacheURL adds the flag of a command that only asks a shared cache.
func addCacheURL(o commands, c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "cache", o.Getenv("SLIPWAY_CACHE"), "the server: "+cacheURLForm)
}

func (f *cacheFlags) add(o commands, c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.url, "cache", o.Getenv("SLIPWAY_CACHE"), "take results from a server of the Remote Execution API: "+cacheURLForm)
	flags.BoolVar(&f.none, "no-cache", false, "take no results from a server, and make anew what earlier runs took from one")
	flags.BoolVar(&f.upload, "cache-upload", o.IsOn(session.CacheUpload),
		"also store results, signed by the key in $SLIPWAY_CACHE_SIGNING_KEY (default $SLIPWAY_CACHE_UPLOAD)")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if f.none && f.upload && flags.Changed("cache-upload") {
			return badrequest.Mark(errors.New("--no-cache asks no server: leave out --cache-upload, or --no-cache"))
		}
		return nil
	}
}

var errNoCache = badrequest.Mark(errors.New("there is no cache: name one in SLIPWAY_CACHE, with --cache, or in release.yaml"))

// A cacheUse is a shared cache, in use by one command. It may be nil.
type cacheUse struct {
	*sharedcache.Cache
	client   *reapi.Client
	modules  *modproxy.Server // serves go commands what the cache has; nil if it could not be started
	notify   func(string)
	withheld string // why no results are stored although they should be
}

// results returns the cache as a run takes it.
func (u *cacheUse) results() action.Cache {
	if u == nil {
		return nil
	}
	return u.Cache
}

func (u *cacheUse) close() {
	if u == nil {
		return
	}
	if u.modules != nil {
		_ = u.modules.Close() // its files are temporary ones
	}
	u.client.Close()
}

// serve has the go commands of a project ask the cache for modules, too.
func (u *cacheUse) serve(ctx context.Context, p *project.Project) {
	if u == nil {
		return
	}
	if u.modules == nil {
		var err error
		if u.modules, err = modproxy.Start(ctx, u.Cache); err != nil {
			u.notify(fmt.Sprintf("modules do not come from the cache: %v", err))
			return
		}
	}
	p.UseModuleProxy(u.modules.URL)
}

// keepModules stores the modules of a project that are in the module cache.
func (u *cacheUse) keepModules(ctx context.Context, p *project.Project, notify func(string)) error {
	if u == nil || !u.Stores() {
		return nil
	}
	u.notify = notify // the run's events are over
	g, err := p.Go(ctx, nil)
	if err != nil {
		return err
	}
	modules, err := p.Modules(ctx)
	if err != nil {
		return err
	}
	return modproxy.Store(ctx, u.Cache, g.ModCache, modules)
}

// summary says what the cache was good for.
func (u *cacheUse) summary() string {
	n := u.Counts()
	if n == (sharedcache.Counts{}) {
		return ""
	}
	text := fmt.Sprintf("cache %s: %d of %s, %s fetched", u.Name, n.Hits,
		session.Count(int(n.Hits+n.Misses+n.Untrusted), "result"), console.Size(n.Fetched))
	if n.Untrusted > 0 {
		text += fmt.Sprintf("; %s not signed by a key that counts", session.Count(int(n.Untrusted), "result"))
	}
	if n.Stored > 0 {
		text += fmt.Sprintf("; %s stored, %s", session.Count(int(n.Stored), "result"), console.Size(n.Uploaded))
	}
	return text
}

// openCache returns the cache that flags, environment and release.yaml name, or nil if they name none. It is used once begin was called.
func (o commands) openCache(ctx context.Context, f cacheFlags, p *project.Project) (*cacheUse, error) {
	at := o.cacheURL(f.url, p.Catalog)
	if f.none || at == "" {
		if f.upload && !f.none {
			return nil, badrequest.Mark(errors.New("results cannot be stored: name a cache, in SLIPWAY_CACHE or with --cache"))
		}
		return nil, nil
	}
	client, err := o.cacheClient(at)
	if err != nil {
		return nil, err
	}
	u := &cacheUse{client: client}
	with := sharedcache.Options{Client: client, Name: serverName(at), Notify: func(text string) { u.notify(text) }}
	if with.Keys, err = o.cacheKeys(ctx, p.Root, p.Catalog); err != nil {
		return nil, err
	}
	if f.upload {
		key, err := o.cacheSigner(ctx)
		if err != nil {
			return nil, err
		}
		with.Keys = append(with.Keys, key.Public())
		switch until := p.Catalog.Embargo; {
		case o.Now().Before(until):
			u.withheld = "the tree is under embargo until " + until.Format(time.RFC3339)
		case p.Stamp.TreeState == "dirty":
			u.withheld = "the tree has changes that are not committed"
		default:
			with.Sign = &key
		}
	}
	if len(with.Keys) == 0 {
		return nil, badrequest.Mark(errors.New("no result of the cache would count: name files of public keys in SLIPWAY_CACHE_KEYS, or in " +
			"release.yaml"))
	}
	u.Cache = sharedcache.New(with)
	return u, nil
}

// begin returns a function that shows the events of a run, and before the last one what the cache was good for. What the cache says
// meanwhile is shown as an event, too, one at a time.
func (u *cacheUse) begin(f cacheFlags, show func(action.Event)) func(action.Event) {
	if u == nil {
		return show
	}
	var mu sync.Mutex
	say := func(text string) {
		if text != "" {
			show(action.Event{Time: time.Now(), Kind: action.Output, Text: text})
		}
	}
	u.notify = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		say(text)
	}
	if f.upload && u.withheld != "" {
		u.notify(u.withheld + ": its results are not stored in the cache")
	}
	return func(e action.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == action.Finished {
			say(u.summary())
		}
		show(e)
	}
}

// cacheURL returns where the cache is, or "".
func (o commands) cacheURL(flag string, c *catalog.Catalog) string {
	switch flag {
	case "off":
		return ""
	case "":
		return c.Cache.URL
	}
	return flag
}

// serverName returns what messages call a server: without user and password.
func serverName(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return "server"
	}
	return u.Host
}

func (o commands) cacheClient(at string) (*reapi.Client, error) {
	files := credentials.Files{CA: o.Getenv("SLIPWAY_CACHE_TLS_CA"), Certificate: o.Getenv("SLIPWAY_CACHE_TLS_CERTIFICATE"),
		Key: o.Getenv("SLIPWAY_CACHE_TLS_KEY")}
	config, err := files.TLS()
	if err != nil {
		return nil, badrequest.Mark(fmt.Errorf("TLS of the cache: %w", err))
	}
	source := credentials.Source{TokenFile: o.Getenv("SLIPWAY_CACHE_TOKEN_FILE"), Helper: o.Getenv("SLIPWAY_CACHE_CREDENTIAL_HELPER"),
		URI: "https://" + serverName(at)}
	client, err := reapi.New(reapi.Options{URL: at, TLS: config, Credentials: source.Headers(), Agent: "slipway"})
	if errors.Is(err, reapi.ErrUser) {
		err = fmt.Errorf("%w: name a file with a token in SLIPWAY_CACHE_TOKEN_FILE, or a credential helper in SLIPWAY_CACHE_CREDENTIAL_HELPER",
			err)
	}
	if err != nil {
		return nil, badrequest.Mark(fmt.Errorf("the cache: %w", err))
	}
	return client, nil
}

// cacheKeys returns the keys whose results count.
func (o commands) cacheKeys(ctx context.Context, root string, c *catalog.Catalog) ([]signature.PublicKey, error) {
	var names []string
	if list := o.Getenv("SLIPWAY_CACHE_KEYS"); list != "" {
		names = filepath.SplitList(list)
	} else {
		for _, name := range c.Cache.Keys {
			names = append(names, filepath.Join(root, filepath.FromSlash(name)))
		}
	}
	var keys []signature.PublicKey
	for _, name := range names {
		key, err := signature.ReadPublic(ctx, name)
		if err != nil {
			return nil, badrequest.Mark(fmt.Errorf("a key for the cache: %w", err))
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// cacheSigner returns the key that signs results.
func (o commands) cacheSigner(ctx context.Context) (signature.PrivateKey, error) {
	name := o.Getenv("SLIPWAY_CACHE_SIGNING_KEY")
	if name == "" {
		return signature.PrivateKey{}, badrequest.Mark(errors.New("results cannot be stored: name the private key that signs them in " +
			"SLIPWAY_CACHE_SIGNING_KEY; slipway keys new makes one"))
	}
	key, err := signature.ReadPrivate(ctx, name, o.Password("Password of "+name))
	if err != nil {
		return key, fmt.Errorf("read the key: %w", err)
	}
	return key, nil
}

func newCache(o commands) *cobra.Command {
	c := &cobra.Command{
		Use:   "cache",
		Short: "Ask about the shared cache",
		Args:  session.OnlySubcommands,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCacheStatus(o), newCacheKeys(o), newCacheExplain(o), newCachePrefetch(o), newCacheAudit(o), newCacheTargets(o))
	return c
}

func newCacheStatus(o commands) *cobra.Command {
	var at string
	c := &cobra.Command{
		Use:   "status",
		Short: "Ask the shared cache what it can do, and say whose results count",
		Long: `status asks the server whether it answers, how long that takes, and whether it takes results from here. It prints the
keys whose results count.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := o.Load()
			if err != nil {
				return err
			}
			at := o.cacheURL(at, p.Catalog)
			if at == "" {
				return errNoCache
			}
			return o.cacheStatus(c.Context(), at, p)
		},
	}
	addCacheURL(o, c, &at)
	return c
}

func (o commands) cacheStatus(ctx context.Context, at string, p *project.Project) error {
	keys, err := o.cacheKeys(ctx, p.Root, p.Catalog)
	if err != nil {
		return err
	}
	client, err := o.cacheClient(at)
	if err != nil {
		return err
	}
	defer client.Close()
	start := time.Now()
	caps, err := client.Capabilities(ctx)
	if err != nil {
		return fmt.Errorf("the cache %s: %w", serverName(at), err)
	}
	took := time.Since(start)
	if !caps.SHA256 {
		return fmt.Errorf("the cache %s takes no digests by SHA-256", serverName(at))
	}
	hints := []string{} // an empty list in JSON, not null
	for _, k := range keys {
		hints = append(hints, k.Hint())
	}
	if o.JSON {
		if err := o.PrintJSON(map[string]any{"server": serverName(at), "milliseconds": took.Milliseconds(),
			"takesResults": caps.Update, "keys": hints}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(o.Out, "%s answers in %v\n", serverName(at), took.Round(time.Millisecond))
		fmt.Fprintf(o.Out, "takes results from here: %s\n", map[bool]string{true: "yes", false: "no"}[caps.Update])
		fmt.Fprintf(o.Out, "results count that are signed by: %s\n", strings.Join(hints, ", "))
	}
	if len(hints) == 0 {
		return errors.New("no result counts: name files of public keys in SLIPWAY_CACHE_KEYS, or in release.yaml")
	}
	return nil
}
