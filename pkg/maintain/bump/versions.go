package bump

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/tail"
)

// A versionInfo is what a proxy says about a version.
type versionInfo struct {
	Path, Version string
	GoVersion     string
	Versions      []string // without pre-releases, if they were asked for
	Update        *struct{ Version string }
	Error         *struct{ Err string }
}

// look asks about versions without fetching them: PATH@VERSION or PATH@latest, and flags before them. A version that does not exist,
// or is refused, has an Error; a proxy that does not answer is an error of look.
func (p *proxy) look(ctx context.Context, args ...string) ([]versionInfo, error) {
	out, err := p.run(ctx, p.dir, append([]string{"list", "-m", "-e", "-json=Path,Version,GoVersion,Versions,Error"}, args...)...)
	if err != nil && len(bytes.TrimSpace(out)) == 0 {
		return nil, err
	}
	all, decodeErr := decode[versionInfo](out)
	failed := false
	for _, v := range all {
		if failed = failed || v.Error != nil; v.Error != nil && !absent(v.Error.Err) {
			asked := v.Path + "@" + v.Version
			return nil, fmt.Errorf("ask for %s: %s", asked, strings.TrimPrefix(tail.Redact(strings.TrimSpace(v.Error.Err)), asked+": "))
		}
	}
	if err != nil && !failed {
		return nil, err
	}
	return all, decodeErr
}

// absent reports whether the go command's error says that a version does not exist, or that the proxy refuses it. Otherwise the proxy
// did not answer.
func absent(text string) bool {
	return slices.ContainsFunc([]string{
		"404 Not Found", "403 Forbidden", "410 Gone", "unknown revision", "no matching versions", "no such file or directory",
	}, func(part string) bool { return strings.Contains(text, part) })
}

// patches returns the versions of a module from one on that differ in their last number only, oldest first. format has %d for
// that number. A proxy's list of versions is not complete, so patches asks for one after the other, until two are missing.
func (p *proxy) patches(ctx context.Context, path, format string, from int) ([]string, error) {
	var versions []string
	for next, missing := from, 0; ; {
		var asked []string
		for range 4 {
			asked = append(asked, path+"@"+fmt.Sprintf(format, next))
			next++
		}
		found, err := p.look(ctx, asked...)
		if err != nil {
			return nil, err
		}
		for _, v := range found {
			if v.Error == nil {
				missing = 0
				versions = append(versions, v.Version)
			} else if missing++; missing == 2 {
				return versions, nil
			}
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("go list -m %s: no answer", asked[0])
		}
	}
}

// newerPatches returns the versions of a module after one that differ from it in their last number only, oldest first.
func (p *proxy) newerPatches(ctx context.Context, path, version string) ([]string, error) {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "v%d.%d.%d", &major, &minor, &patch); err != nil || !isRelease(version) {
		return nil, fmt.Errorf("%q is not a released version like v1.37.1", version)
	}
	return p.patches(ctx, path, fmt.Sprintf("v%d.%d.%%d", major, minor), patch+1)
}

// isRelease reports whether a version has three numbers and nothing else.
func isRelease(version string) bool {
	return semver.Canonical(version) == version && semver.Prerelease(version) == ""
}

// newest returns the newest version of the minors after one, or current if there is none. List returns
// the versions of a minor, oldest first.
func newest(current string, minor int, list func(minor int) ([]string, error)) (string, error) {
	for {
		minor++
		versions, err := list(minor)
		if err != nil || len(versions) == 0 {
			return current, err
		}
		current = versions[len(versions)-1]
	}
}

// newer returns versions of a module after one, oldest first: those in the proxy's list, and patches of the same minor.
func (p *proxy) newer(ctx context.Context, path, version string) ([]string, error) {
	listed, err := p.look(ctx, "-versions", path+"@"+version, path+"@latest")
	if err != nil {
		return nil, err
	}
	var versions []string
	for _, v := range listed {
		versions = append(versions, append(v.Versions, v.Version)...)
	}
	if isRelease(version) {
		found, err := p.newerPatches(ctx, path, version)
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

// older returns versions of a module before one, newest first. Besides those in the proxy's list, which is not complete, it asks for
// patches of the five minors before.
func (p *proxy) older(ctx context.Context, path, version string) ([]versionInfo, error) {
	listed, err := p.look(ctx, "-versions", path+"@"+version)
	if err != nil {
		return nil, err
	}
	var versions []string
	for _, v := range listed {
		versions = append(versions, v.Versions...)
	}
	var major, minor int
	if _, err := fmt.Sscanf(version, "v%d.%d.", &major, &minor); err != nil {
		return nil, fmt.Errorf("%s@%s: %w", path, version, err)
	}
	for m := minor; m >= max(0, minor-5); m-- {
		found, err := p.patches(ctx, path, fmt.Sprintf("v%d.%d.%%d", major, m), 0)
		if err != nil {
			return nil, err
		}
		versions = append(versions, found...)
	}
	semver.Sort(versions)
	var asked []string
	for _, v := range slices.Backward(slices.Compact(versions)) {
		if semver.Prerelease(v) == "" && semver.Compare(v, version) < 0 {
			asked = append(asked, path+"@"+v)
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	found, err := p.look(ctx, asked[:min(len(asked), 20)]...)
	return slices.DeleteFunc(found, func(v versionInfo) bool { return v.Error != nil }), err
}

// newestGo returns the newest patch of a version of Go that is available for this machine: go1.26.10.
func (p *proxy) newestGo(ctx context.Context, version string) (string, error) {
	var minor, patch int
	if _, err := fmt.Sscanf(version, "go1.%d.%d", &minor, &patch); err != nil {
		return "", fmt.Errorf("%q is not a version of Go like go1.26.8", version)
	}
	newer, err := p.goPatches(ctx, minor, patch+1)
	if err != nil || len(newer) == 0 {
		return version, err
	}
	return newer[len(newer)-1], nil
}

// goPatches returns the versions of Go 1 with a minor that are available for this machine, from a patch on, oldest first.
func (p *proxy) goPatches(ctx context.Context, minor, from int) ([]string, error) {
	found, err := p.patches(ctx, "golang.org/toolchain", fmt.Sprintf("v0.0.1-go1.%d.%%d.%s", minor, toolchain.Host()), from)
	for i, version := range found {
		found[i] = strings.TrimSuffix(strings.TrimPrefix(version, "v0.0.1-"), "."+toolchain.Host())
	}
	return found, err
}
