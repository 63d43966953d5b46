package bump

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	goversion "go/version"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/tree/catalog"
)

// A step is a part of a bump, after which others may follow.
type step func(ctx context.Context) error

// Names of what is not another project.
const (
	nameKubernetes = "kubernetes"
	nameGo         = "go"
	nameDebian     = "debian"
)

// Names lists what a target can name: Go, Debian's packages, and the other projects of a tree.
func Names(c *catalog.Catalog) []string {
	names := []string{nameKubernetes, nameGo, nameDebian}
	for _, folder := range folders(c) {
		names = append(names, strings.TrimPrefix(folder, "images/"))
	}
	return names
}

var (
	released   = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$`)
	likeNumber = regexp.MustCompile(`^v?[0-9]`)
	releasedGo = regexp.MustCompile(`^go[1-9][0-9]*(\.(0|[1-9][0-9]*)){2}$`)
)

// parse turns targets into steps.
func (p *preparation) parse(targets []string) ([]step, error) {
	if len(targets) == 0 {
		return []step{p.toNewest}, nil
	}
	var steps []step
	for _, target := range targets {
		s, err := p.parseOne(target)
		if err != nil {
			return nil, badrequest.Mark(err)
		}
		steps = append(steps, s)
	}
	if len(steps) > 1 && slices.ContainsFunc(targets, isKubernetes) {
		return nil, badrequest.Mark(errors.New("a bump of Kubernetes moves the others, too: bump it alone"))
	}
	return steps, nil
}

func isKubernetes(target string) bool {
	name, _, _ := strings.Cut(target, "@")
	return target == "" || name == nameKubernetes || likeNumber.MatchString(target)
}

func (p *preparation) parseOne(target string) (step, error) {
	name, version, hasVersion := strings.Cut(target, "@")
	if likeNumber.MatchString(target) {
		name, version, hasVersion = nameKubernetes, target, true
	}
	switch {
	case hasVersion && version == "":
		return nil, fmt.Errorf("%q has no version after the @", target)
	case name == "" || name == nameKubernetes && !hasVersion:
		return p.toNewest, nil
	case name == nameKubernetes:
		if !released.MatchString(version) || !strings.HasPrefix(version, "v1.") || semver.Build(version) != "" {
			return nil, fmt.Errorf("%q is not a version of Kubernetes like v1.37.1", version)
		}
		return p.toKubernetes(version), nil
	case name == nameDebian && hasVersion:
		return nil, errors.New("packages of Debian have no common version: bump debian takes what the mirrors have")
	case name == nameDebian:
		return p.toDebian, nil
	case name == nameGo && hasVersion && !releasedGo.MatchString(version):
		return nil, fmt.Errorf("%q is not a version of Go like go1.26.8", version)
	case name == nameGo:
		return p.toGo(version), nil
	}
	projects, err := p.projects()
	if err != nil {
		return nil, err
	}
	for _, pr := range projects {
		if pr.name != name {
			continue
		}
		if hasVersion && (!likeNumber.MatchString(version) || !semver.IsValid(versionOf(version))) {
			return nil, fmt.Errorf("%q is not a version like %s", version, pr.version)
		}
		return p.toProject(pr, version), nil
	}
	return nil, suggest.Unknown("target", name, Names(p.catalog))
}

// toGo moves to a version of Go, or to the newest patch of the pinned one.
func (p *preparation) toGo(version string) step {
	return func(ctx context.Context) error {
		if version == "" {
			newest, err := p.proxy.newestGo(ctx, p.catalog.Go.Version)
			if err != nil {
				return err
			}
			version = newest
		}
		if err := p.moveGo(ctx, version, ""); err != nil {
			return err
		}
		if p.target != version {
			return fmt.Errorf("%s", strings.Join(p.Notes, "; "))
		}
		for _, folder := range append(p.folders(), p.catalog.Module) {
			line, err := p.goLine(folder)
			if err != nil {
				return err
			}
			if goversion.Compare("go"+line, version) > 0 {
				return fmt.Errorf("%s/go.mod asks for Go %s, which is newer than %s", folder, line, version)
			}
		}
		return nil
	}
}

// newestGo returns the newest patch of a version of Go that can be had for this machine: go1.26.10.
func (p *proxy) newestGo(ctx context.Context, version string) (string, error) {
	minor := goversion.Lang(version)
	var patch int
	if _, err := fmt.Sscanf(strings.TrimPrefix(version, minor), ".%d", &patch); err != nil {
		return "", fmt.Errorf("%q is not a version of Go like go1.26.8", version)
	}
	newer, err := p.goPatches(ctx, minor, patch+1)
	if err != nil || len(newer) == 0 {
		return version, err
	}
	return newer[len(newer)-1], nil
}

// goPatches returns the versions of Go with a minor, such as go1.26, that can be had for this machine, from a patch on, oldest first.
func (p *proxy) goPatches(ctx context.Context, minor string, from int) ([]string, error) {
	found, err := p.patches(ctx, "golang.org/toolchain", "v0.0.1-"+minor+".%d."+toolchain.Host(), from)
	for i, version := range found {
		found[i] = strings.TrimSuffix(strings.TrimPrefix(version, "v0.0.1-"), "."+toolchain.Host())
	}
	return found, err
}

// toProject moves another project to a version, or to the one that it should have.
func (p *preparation) toProject(pr project, version string) step {
	return func(ctx context.Context) error {
		if version != "" {
			return p.moveProject(ctx, pr, like(pr, version), "")
		}
		named, why, err := p.namedBy(ctx, pr.name)
		if err != nil {
			return err
		}
		if named != "" {
			return p.moveProject(ctx, pr, named, why)
		}
		if len(pr.modules) == 0 {
			return badrequest.Mark(fmt.Errorf("%s is a program of this tree: it has no other version", pr.name))
		}
		return p.toNewestProject(ctx, pr, "")
	}
}

// toNewestProject moves a project to the newest version that can be had and compiled.
func (p *preparation) toNewestProject(ctx context.Context, pr project, why string) error {
	newer, err := p.proxy.newer(ctx, pr.modules[0], pr.version)
	if err != nil {
		return err
	}
	for _, v := range slices.Backward(newer) {
		err := p.moveModules(ctx, pr, like(pr, v), why)
		var unavailable *Unavailable
		var tooNew *tooNewError
		if errors.As(err, &unavailable) || errors.As(err, &tooNew) {
			p.note("%s %s is newer, but %v", pr.name, v, err)
			continue
		}
		return err
	}
	return nil
}

// namedBy returns the version of a project that the tree's Kubernetes names, if it names one.
func (p *preparation) namedBy(ctx context.Context, name string) (version, why string, err error) {
	k, err := p.proxy.fetch(ctx, requirement{Path: kubernetes, Version: p.catalog.Kubernetes})
	if err != nil {
		return "", "", err
	}
	return namedIn(k[0].Dir, name)
}

func namedIn(kubernetes, name string) (version, why string, err error) {
	asked, err := kubeadmVersions(kubernetes)
	if err != nil {
		return "", "", err
	}
	if asked[name] != "" {
		return asked[name], "kubeadm names it", nil
	}
	listed, err := dependencies(kubernetes)
	if err != nil {
		return "", "", err
	}
	if name == "cni-plugins" && listed["cni"] != "" {
		return "v" + strings.TrimPrefix(listed["cni"], "v"), "Kubernetes names it", nil
	}
	return "", "", nil
}

// newer returns versions of a module after one, oldest first: those in the proxy's list, and patches of the same minor.
func (p *proxy) newer(ctx context.Context, path, version string) ([]string, error) {
	listed, err := p.look(ctx, "-versions", path+"@"+version)
	if err != nil {
		return nil, err
	}
	latest, err := p.look(ctx, path+"@latest")
	if err != nil {
		return nil, err
	}
	var versions []string
	for _, k := range append(listed, latest...) {
		versions = append(versions, append(k.Versions, k.Version)...)
	}
	if format, patch, err := patchFormat(version); err == nil {
		found, err := p.patches(ctx, path, format, patch+1)
		if err != nil {
			return nil, err
		}
		versions = append(versions, found...)
	}
	semver.Sort(versions)
	return slices.DeleteFunc(slices.Compact(versions), func(v string) bool {
		return semver.Prerelease(v) != "" || semver.Compare(v, version) <= 0 || strings.HasSuffix(v, "+incompatible")
	}), nil
}
