package bump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	goversion "go/version"

	"golang.org/x/mod/semver"

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
	Note   string `json:"note,omitempty"`   // such as why the newest cannot be looked up

	Mends []string `json:"mends,omitempty"` // known vulnerabilities that Should mends, or without a newer one, Newest

	Overrides []catalog.Override `json:"overrides,omitempty"` // of modules, which mend others

	folder  string   // of the go.mod whose modules the item decides
	modules []string // paths of modules that have the item's version
}

// An inquiry asks what is behind.
type inquiry struct {
	*session
	items []Item
}

// Outdated lists everything that has a version, and whether it is behind. The Note of an item that cannot be looked up says why.
func Outdated(ctx context.Context, o Options) ([]Item, error) {
	if o.DB != "" {
		if err := govulns.Check(o.DB); err != nil {
			return nil, err
		}
	}
	s, err := load(o)
	if err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	defer s.proxy.close()
	q := &inquiry{session: s}
	for _, part := range []struct {
		what string
		ask  func(context.Context)
	}{
		{"Kubernetes", q.askKubernetes}, {"Go", q.askGo}, {"other projects", q.askProjects}, {"Debian's packages", q.askDebian},
		{"Bazel", q.listBazel}, {"the toolchain's modules", q.askToolchain},
	} {
		o.Say("asking about " + part.what)
		part.ask(ctx)
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

// add records an item, and whether it is behind. If err says that it cannot be looked up, that is noted instead of a version.
func (q *inquiry) add(i Item, err error) {
	if err != nil {
		i.Newest, i.Note = "", unknown(err)
	}
	against := cmp.Or(i.Should, i.Newest)
	i.Behind = against != "" && older(i.Kind, i.Have, against)
	q.items = append(q.items, i)
}

// older reports whether a version is older than another. Debian's packages should be those that the mirrors have, newer or older.
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

// unknown returns a note for what cannot be looked up.
func unknown(err error) string {
	first, _, _ := strings.Cut(tail.Redact(err.Error()), "\n")
	return "not known here: " + first
}

func (q *inquiry) askKubernetes(ctx context.Context) {
	i := Item{Kind: "kubernetes", Name: "Kubernetes", Have: q.catalog.Kubernetes, folder: q.catalog.Module, modules: []string{kubernetes}}
	var err error
	if i.Should, i.Note, err = q.newestPatch(ctx, i.Have); err == nil {
		var major, minor int
		_, _ = fmt.Sscanf(i.Have, "v%d.%d.", &major, &minor) // newestPatch has read it, too
		i.Newest, err = newest(i.Should, minor, func(minor int) ([]string, error) {
			return q.proxy.patches(ctx, kubernetes, fmt.Sprintf("v%d.%d.%%d", major, minor), 0)
		})
	}
	q.add(i, err)
}

// newestPatch returns the newest patch of a version of Kubernetes that has the staging modules which the tree needs, and a note about newer
// ones.
func (q *inquiry) newestPatch(ctx context.Context, have string) (newest, note string, err error) {
	newer, err := q.proxy.newerPatches(ctx, kubernetes, have)
	if err != nil {
		return "", "", err
	}
	needed, err := q.needed()
	if err != nil {
		return "", "", err
	}
	for _, version := range slices.Backward(newer) {
		var asked, missing []string
		for _, path := range slices.Sorted(maps.Keys(needed)) {
			if needed[path] == module.Staging(have) {
				asked = append(asked, path+"@"+module.Staging(version))
			}
		}
		if len(asked) == 0 {
			return version, note, nil
		}
		found, err := q.proxy.look(ctx, asked...)
		if err != nil {
			return "", "", err
		}
		for _, v := range found {
			if v.Error != nil {
				missing = append(missing, v.Path)
			}
		}
		if len(missing) == 0 {
			return version, note, nil
		}
		note = fmt.Sprintf("%s lacks %s", version, strings.Join(missing, ", "))
	}
	return have, note, nil
}

func (q *inquiry) askGo(ctx context.Context) {
	for _, i := range []Item{{Name: "Go", Have: q.catalog.Go.Version}, {Name: "Go of slipway itself", Have: q.catalog.Tools.Version}} {
		if i.Have == "" {
			continue
		}
		i.Kind = "go"
		patch, err := q.proxy.newestGo(ctx, i.Have)
		if err == nil {
			var minor int
			_, _ = fmt.Sscanf(patch, "go1.%d", &minor) // newestGo has read it, too
			i.Should = patch
			i.Newest, err = newest(patch, minor, func(minor int) ([]string, error) { return q.proxy.goPatches(ctx, minor, 0) })
		}
		q.add(i, err)
	}
}

func (q *inquiry) askProjects(ctx context.Context) {
	names, namesErr := q.namedVersions(ctx)
	for _, pr := range q.projects {
		i := Item{Kind: "project", Name: pr.name, Have: pr.version, folder: pr.folder, modules: pr.modules}
		if len(pr.images) > 0 {
			i.Have = pr.images[0].Version
		}
		n, named := names[pr.name]
		if named {
			i.Should, i.Note = like(pr, n.version), n.why
		}
		err := namesErr
		switch {
		case err != nil:
		case len(pr.modules) > 0:
			var newer []string
			newer, err = q.proxy.newer(ctx, pr.modules[0], pr.version)
			newer = append([]string{pr.version}, newer...)
			i.Newest = like(pr, newer[len(newer)-1])
		case !named:
			continue // a program of this tree
		}
		q.add(i, err)
	}
}

func (q *inquiry) askDebian(ctx context.Context) {
	locks, err := ResolveDebian(ctx, q.Root, q.catalog, q.Debian)
	if err != nil {
		q.add(Item{Kind: "debian", Name: "packages"}, err)
	}
	for _, l := range locks {
		old, err := debian.ReadLock(filepath.Join(q.Root, filepath.FromSlash(l.File)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			q.add(Item{Kind: "debian", Name: l.File}, err)
			continue
		}
		for _, m := range lockMoves(old, l.Lock) {
			q.add(Item{Kind: "debian", Name: strings.TrimPrefix(m.What, "Debian "), Have: m.From, Newest: m.To, Note: l.File + m.Why}, nil)
		}
	}
}

// ruleSet matches a rule set that MODULE.bazel names by itself.
var ruleSet = regexp.MustCompile(`(?m)^bazel_dep\(name = "([^"]+)", version = "([^"]+)"`)

// listBazel adds Bazel and its rule sets. None can be looked up: they are in Bazel's registry.
func (q *inquiry) listBazel(context.Context) {
	version, err := os.ReadFile(filepath.Join(q.Root, ".bazelversion"))
	if err != nil {
		return // a tree without Bazel
	}
	registry := errors.New("its releases are not Go modules, and nothing else is asked")
	q.add(Item{Kind: "bazel", Name: "Bazel", Have: strings.TrimSpace(string(version))}, registry)
	text, _ := os.ReadFile(filepath.Join(q.Root, "MODULE.bazel")) // without it, there are no rule sets
	for _, m := range ruleSet.FindAllSubmatch(text, -1) {
		q.add(Item{Kind: "bazel", Name: string(m[1]), Have: string(m[2])}, registry)
	}
}

// askToolchain adds the modules that slipway itself uses directly, rules_go and gazelle among them.
func (q *inquiry) askToolchain(ctx context.Context) {
	m, err := module.Load(q.Root, ".")
	if errors.Is(err, os.ErrNotExist) {
		return // a tree without slipway's sources
	}
	var all []versionInfo
	if err == nil {
		args := []string{"list", "-mod=readonly", "-m", "-u", "-e", "-json=Path,Version,Update,Error"}
		for _, r := range m.Requires {
			if r.Direct {
				args = append(args, r.Path)
			}
		}
		var out []byte
		if out, err = q.proxy.run(ctx, q.Root, args...); err == nil {
			all, err = decode[versionInfo](out)
		}
	}
	if err != nil {
		q.add(Item{Kind: "toolchain", Name: "modules"}, err)
	}
	for _, v := range all {
		i := Item{Kind: "toolchain", Name: v.Path, Have: v.Version, Newest: v.Version}
		var failed error
		if v.Error != nil {
			failed = errors.New(v.Error.Err)
		} else if v.Update != nil && semver.Compare(v.Update.Version, v.Version) > 0 {
			i.Newest = v.Update.Version
		}
		q.add(i, failed)
	}
}
