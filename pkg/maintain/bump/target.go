package bump

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/tree/catalog"
)

// A step is a part of a bump.
type step func(ctx context.Context) error

// Names of what is not another project.
const (
	nameKubernetes = "kubernetes"
	nameGo         = "go"
	nameDebian     = "debian"
	nameSlipway    = "slipway"
)

// Names lists what a target can name: Go, Debian's packages, slipway, and the other projects of a tree.
func Names(c *catalog.Catalog) []string {
	names := []string{nameKubernetes, nameGo, nameDebian, nameSlipway}
	for _, folder := range folders(c) {
		names = append(names, strings.TrimPrefix(folder, "images/"))
	}
	return names
}

var (
	likeNumber = regexp.MustCompile(`^v?[0-9]`)
	releasedGo = regexp.MustCompile(`^go[1-9][0-9]*(\.(0|[1-9][0-9]*)){2}$`)
)

// parse turns targets into steps.
func (p *preparation) parse(targets []string) ([]step, error) {
	if p.From != "" {
		return p.parseFrom(targets)
	}
	if len(targets) == 0 {
		return []step{p.toKubernetes("")}, nil
	}
	if len(targets) == 2 && targets[0] == nameSlipway && likeNumber.MatchString(targets[1]) {
		targets = []string{nameSlipway + "@" + targets[1]}
	}
	var steps []step
	for _, target := range targets {
		s, err := p.parseOne(target)
		if err != nil {
			return nil, badrequest.Mark(err)
		}
		steps = append(steps, s)
	}
	if len(steps) > 1 && slices.ContainsFunc(targets, isSlipway) {
		return nil, badrequest.Mark(errors.New("a new slipway may move things in another way: bump it alone"))
	}
	if len(steps) > 1 && slices.ContainsFunc(targets, isKubernetes) {
		return nil, badrequest.Mark(errors.New("a bump of Kubernetes moves the other projects, too: bump it alone"))
	}
	return steps, nil
}

func isKubernetes(target string) bool {
	name, _, _ := strings.Cut(target, "@")
	return target == "" || name == nameKubernetes || likeNumber.MatchString(target)
}

func isSlipway(target string) bool {
	name, _, _ := strings.Cut(target, "@")
	return name == nameSlipway
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
		return p.toKubernetes(""), nil
	case name == nameKubernetes:
		if semver.Canonical(version) != version || semver.Major(version) != "v1" {
			return nil, fmt.Errorf("%q is not a version of Kubernetes like v1.37.1", version)
		}
		if err := catalog.CheckKubernetes(version); err != nil {
			return nil, err
		}
		return p.toKubernetes(version), nil
	case name == nameSlipway && hasVersion && semver.Canonical(version) != version:
		return nil, fmt.Errorf("%q is not a version of slipway like v0.2.0", version)
	case name == nameSlipway:
		return p.toSlipway(version), nil
	case name == nameDebian && hasVersion:
		return nil, errors.New("packages of Debian have no common version: each moves to the one that the mirrors have")
	case name == nameDebian:
		return p.toDebian, nil
	case name == nameGo && hasVersion && !releasedGo.MatchString(version):
		return nil, fmt.Errorf("%q is not a version of Go like go1.26.8", version)
	case name == nameGo:
		return p.toGo(version), nil
	}
	for _, pr := range p.projects {
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

// toProject moves another project to a version, or to the one that it should have.
func (p *preparation) toProject(pr project, version string) step {
	return func(ctx context.Context) error {
		if version != "" {
			return p.moveProject(ctx, pr, like(pr, version), "")
		}
		names, err := p.namedVersions(ctx)
		if err != nil {
			return err
		}
		if n, named := names[pr.name]; named {
			return p.moveProject(ctx, pr, n.version, n.why)
		}
		if len(pr.modules) == 0 {
			return badrequest.Mark(fmt.Errorf("%s is a program of this tree: it has no other version", pr.name))
		}
		return p.toNewestProject(ctx, pr, "")
	}
}

// toNewestProject moves a project to the newest version that is available and that the Go compiles.
func (p *preparation) toNewestProject(ctx context.Context, pr project, why string) error {
	newer, err := p.proxy.newer(ctx, pr.modules[0], pr.version)
	if err != nil {
		return err
	}
	for _, v := range slices.Backward(newer) {
		err := p.moveProject(ctx, pr, like(pr, v), why)
		if !unusable(err) {
			return err
		}
		p.note("%s %s is newer, but %v", pr.name, v, err)
	}
	return nil
}
