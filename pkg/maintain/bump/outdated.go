package bump

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	goversion "go/version"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/govulns"
	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/tree/catalog"
	"slipway.build/pkg/tree/module"
)

// An Item is something that has versions.
type Item struct {
	Kind   string `json:"kind"` // kubernetes, go, project, debian, bazel, toolchain
	Name   string `json:"name"`
	Have   string `json:"have"`
	Should string `json:"should,omitempty"` // what the tree's Kubernetes names, or the newest patch of the same minor
	Newest string `json:"newest,omitempty"` // of all
	Behind bool   `json:"behind"`           // older than Should, or, without one, than Newest
	Note   string `json:"note,omitempty"`   // such as why the newest is not known here

	Mends []string `json:"mends,omitempty"` // known vulnerabilities that Should mends, or without a newer one, Newest
}

// An inquiry asks what is behind.
type inquiry struct {
	Options
	catalog *catalog.Catalog
	proxy   *proxy
	go_     *toolchain.Go
	items   []Item
}

// Outdated lists everything that has a version, and whether it is behind. An item that cannot be asked about says why in its Note.
func Outdated(ctx context.Context, o Options) ([]Item, error) {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if o.DB != "" {
		if err := govulns.Check(o.DB); err != nil {
			return nil, err
		}
	}
	q := &inquiry{Options: o}
	var err error
	if q.catalog, err = catalog.Load(o.Root); err != nil {
		return nil, err
	}
	own := q.catalog.Own()
	if q.go_, err = toolchain.Find(ctx, toolchain.Pin{Version: own.Version, Sums: own.Sums}, o.Say); err != nil {
		return nil, err
	}
	if q.proxy, err = newProxy(q.go_); err != nil {
		return nil, err
	}
	defer q.proxy.close()
	for _, part := range []struct {
		what string
		ask  func(context.Context) error
	}{
		{"Kubernetes", q.kubernetes}, {"Go", q.goVersions}, {"other projects", q.projects}, {"Debian's packages", q.debian},
		{"Bazel", q.bazel}, {"the toolchain's modules", q.toolchain},
	} {
		o.Say("asking about " + part.what)
		if err := part.ask(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", part.what, err)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if o.DB == "" {
		return q.items, nil
	}
	o.Say("asking about vulnerabilities")
	return q.items, q.mends(ctx)
}

// add records an item, and whether it is behind.
func (q *inquiry) add(i Item) {
	against := i.Should
	if against == "" {
		against = i.Newest
	}
	i.Behind = against != "" && older(i.Kind, i.Have, against)
	q.items = append(q.items, i)
}

// older reports whether a version is older than another one. Debian's packages should be those that the mirrors have, newer or older.
func older(kind, have, than string) bool {
	if kind == "go" {
		return goversion.Compare(have, than) < 0
	}
	have, than = "v"+strings.TrimPrefix(have, "v"), "v"+strings.TrimPrefix(than, "v") // images have none
	if kind == "debian" || !semver.IsValid(have) || !semver.IsValid(than) {
		return have != than
	}
	return semver.Compare(have, than) < 0
}

// notKnown returns a note for what cannot be asked.
func notKnown(err error) string {
	first, _, _ := strings.Cut(tail.Redact(err.Error()), "\n")
	return "not known here: " + first
}

func (q *inquiry) kubernetes(ctx context.Context) error {
	i := Item{Kind: "kubernetes", Name: "Kubernetes", Have: q.catalog.Kubernetes, Should: q.catalog.Kubernetes}
	newest, note, err := q.newestPatch(ctx, i.Have)
	if err != nil {
		i.Should, i.Note = "", notKnown(err)
		q.add(i)
		return nil
	}
	i.Should, i.Newest, i.Note = newest, newest, note
	var major, minor int
	if _, err := fmt.Sscanf(i.Have, "v%d.%d.", &major, &minor); err != nil {
		return err
	}
	for {
		minor++
		next, err := q.proxy.patches(ctx, kubernetes, fmt.Sprintf("v%d.%d.%%d", major, minor), 0)
		if err != nil {
			i.Newest, i.Note = "", notKnown(err)
		}
		if err != nil || len(next) == 0 {
			q.add(i)
			return nil
		}
		i.Newest = next[len(next)-1]
	}
}

// newestPatch returns the newest patch of a version of Kubernetes that has the staging modules which the tree needs, and a note about newer
// ones.
func (q *inquiry) newestPatch(ctx context.Context, have string) (newest, note string, err error) {
	format, patch, err := patchFormat(have)
	if err != nil {
		return "", "", err
	}
	newer, err := q.proxy.patches(ctx, kubernetes, format, patch+1)
	if err != nil {
		return "", "", err
	}
	m, err := module.Load(q.Root, q.catalog.Module)
	if err != nil {
		return "", "", err
	}
	needed, err := needed(q.Root, q.catalog)
	if err != nil {
		return "", "", err
	}
	for _, version := range slices.Backward(newer) {
		var asked []string
		for _, r := range m.Replaces {
			if slices.Contains(needed, r.Old.Path) && r.New.Path == r.Old.Path && r.New.Version == StagingVersion(have) {
				asked = append(asked, r.New.Path+"@"+StagingVersion(version))
			}
		}
		if len(asked) == 0 {
			return version, note, nil
		}
		found, err := q.proxy.look(ctx, asked...)
		if err != nil {
			return "", "", err
		}
		var missing []string
		for _, k := range found {
			if k.Error != nil {
				missing = append(missing, k.Path)
			}
		}
		if len(missing) == 0 {
			return version, note, nil
		}
		note = fmt.Sprintf("%s lacks %s", version, strings.Join(missing, ", "))
	}
	return have, note, nil
}

func (q *inquiry) goVersions(ctx context.Context) error {
	pins := []struct {
		name string
		catalog.Toolchain
	}{{"Go", q.catalog.Go}, {"Go of slipway itself", q.catalog.Tools}}
	for _, pin := range pins {
		if pin.Version == "" {
			continue
		}
		i := Item{Kind: "go", Name: pin.name, Have: pin.Version}
		newest, err := q.proxy.newestGo(ctx, pin.Version)
		if err != nil {
			i.Note = notKnown(err)
			q.add(i)
			continue
		}
		i.Should, i.Newest = newest, newest
		var minor int
		if _, err := fmt.Sscanf(goversion.Lang(pin.Version), "go1.%d", &minor); err != nil {
			return err
		}
		for {
			minor++
			next, err := q.proxy.goPatches(ctx, fmt.Sprintf("go1.%d", minor), 0)
			if err != nil {
				i.Newest, i.Note = "", notKnown(err)
			}
			if err != nil || len(next) == 0 {
				break
			}
			i.Newest = next[len(next)-1]
		}
		q.add(i)
	}
	return nil
}

func (q *inquiry) projects(ctx context.Context) error {
	all, err := projects(q.Root, q.catalog)
	if err != nil {
		return err
	}
	k, err := q.proxy.fetch(ctx, requirement{Path: kubernetes, Version: q.catalog.Kubernetes})
	for _, pr := range all {
		i := Item{Kind: "project", Name: pr.name, Have: pr.version}
		if len(pr.images) > 0 {
			i.Have = pr.images[0].Version
		}
		if err != nil {
			i.Note = notKnown(err)
			q.add(i)
			continue
		}
		named, why, err := namedIn(k[0].Dir, pr.name)
		if err != nil {
			return err
		}
		if named != "" {
			i.Should, i.Note = like(pr, named), why
		}
		if len(pr.modules) > 0 {
			newer, err := q.proxy.newer(ctx, pr.modules[0], pr.version)
			switch {
			case err != nil:
				i.Note = notKnown(err)
			case len(newer) > 0:
				i.Newest = like(pr, newer[len(newer)-1])
			default:
				i.Newest = like(pr, pr.version)
			}
		} else if named == "" {
			continue // a program of this tree
		}
		q.add(i)
	}
	return nil
}

func (q *inquiry) debian(ctx context.Context) error {
	if !slices.ContainsFunc(q.catalog.Images, func(im catalog.Image) bool {
		_, err := os.Stat(filepath.Join(q.Root, "images", im.Base, "packages.txt"))
		return im.Base != "" && err == nil
	}) {
		return nil
	}
	locks, err := ResolveDebian(ctx, q.Root, q.catalog, q.Debian)
	if err != nil {
		if ctx.Err() == nil {
			q.add(Item{Kind: "debian", Name: "packages", Note: notKnown(err)})
			err = nil
		}
		return err
	}
	for _, l := range locks {
		old, err := debian.ReadLock(filepath.Join(q.Root, filepath.FromSlash(l.File)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, m := range lockMoves(old, l.Lock) {
			q.add(Item{Kind: "debian", Name: strings.TrimPrefix(m.What, "Debian "), Have: m.From, Newest: m.To, Note: l.File + m.Why})
		}
	}
	return nil
}

// ruleSet matches a rule set that MODULE.bazel names by itself.
var ruleSet = regexp.MustCompile(`(?m)^bazel_dep\(name = "([^"]+)", version = "([^"]+)"`)

// bazel adds Bazel and its rule sets. Only those that are Go modules, too, can be asked about: others are in Bazel's registry.
func (q *inquiry) bazel(context.Context) error {
	version, err := os.ReadFile(filepath.Join(q.Root, ".bazelversion"))
	if err != nil {
		return nil // a tree without Bazel
	}
	const registry = "not known here: its releases are not Go modules, and nothing else is asked"
	q.add(Item{Kind: "bazel", Name: "Bazel", Have: strings.TrimSpace(string(version)), Note: registry})
	text, err := os.ReadFile(filepath.Join(q.Root, "MODULE.bazel"))
	if err != nil {
		return nil
	}
	for _, m := range ruleSet.FindAllSubmatch(text, -1) {
		q.add(Item{Kind: "bazel", Name: string(m[1]), Have: string(m[2]), Note: registry})
	}
	return nil
}

// toolchain adds the modules that slipway itself uses directly, rules_go and gazelle among them.
func (q *inquiry) toolchain(ctx context.Context) error {
	m, err := module.Load(q.Root, ".")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	args := []string{"list", "-mod=readonly", "-m", "-u", "-e", "-json=Path,Version,Update,Error"}
	for _, r := range m.Requires {
		if r.Direct {
			args = append(args, r.Path)
		}
	}
	out, err := q.proxy.run(ctx, q.Root, args...)
	if err != nil {
		q.add(Item{Kind: "toolchain", Name: "modules", Note: notKnown(err)})
		return nil
	}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var k struct {
			Path, Version string
			Update        *struct{ Version string }
			Error         *struct{ Err string }
		}
		if err := d.Decode(&k); err != nil {
			return fmt.Errorf("go list -m -u: %w", err)
		}
		i := Item{Kind: "toolchain", Name: k.Path, Have: k.Version, Newest: k.Version}
		switch {
		case k.Error != nil:
			i.Newest, i.Note = "", notKnown(errors.New(k.Error.Err))
		case k.Update != nil && semver.Compare(k.Update.Version, k.Version) > 0:
			i.Newest = k.Update.Version
		}
		q.add(i)
	}
	return nil
}
