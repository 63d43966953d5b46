package kit

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	gomod "golang.org/x/mod/module"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/tree/catalog"
)

// checkModule returns an error for a path that no module can have.
func checkModule(name string) error {
	if err := gomod.CheckPath(name + "/cmd"); err != nil {
		return badrequest.Mark(fmt.Errorf("module path %q: %w", name, cmp.Or(errors.Unwrap(err), err)))
	}
	return nil
}

// release.yaml is edited as text, since its comments and its form are for people. Afterwards it is read like any other.
var (
	item = regexp.MustCompile(`(?m)^- \{.*\n(?:   .*\n)*`) // of a list in release.yaml
	// A list of platforms, in sets or as `only`.
	list = regexp.MustCompile(`(?m)^((?:  \w+:| *- \{.*? only:|.*, only:) (?:&\w+ )?\[)([^\]]*/[^\]]*)(\])`)
)

// binaries are those of a package in release.yaml.
var binaries = regexp.MustCompile(`[{ ]binaries: \[([^\]]*)\]`)

// registry is the line of release.yaml that names the registry of the images.
var registry = regexp.MustCompile(`(?m)^(registry: )(.*)$`)

// maintainer is the line of release.yaml that says whom users of packages can ask.
var maintainer = regexp.MustCompile(`(?m)^maintainer: .*$`)

// ofRegistry returns kubeadm's defaults for the images of a registry.
func ofRegistry(defaults []byte, registry string) []byte {
	return regexp.MustCompile(`(?m)^(imageRepository: )\S+`).ReplaceAll(defaults, []byte("${1}"+registry))
}

// release chooses what a release holds.
func (o Options) release(files map[string]File) error {
	f := files[catalog.File]
	text := string(f.Data)
	for _, name := range o.Without {
		without, packages, err := leaveOut(text, name)
		if err != nil {
			return err
		}
		text = without
		for file := range files {
			for _, folder := range []string{"cmd", "images", "release/manifests/addons", "release/addons"} {
				if strings.HasPrefix(file, path.Join(folder, name)+"/") {
					delete(files, file)
				}
			}
			for _, gone := range packages {
				if strings.HasPrefix(file, path.Join(catalog.PackageFolder, gone)+"/") ||
					strings.HasPrefix(file, path.Join(catalog.PackageFolder, gone)+".") {
					delete(files, file)
				}
			}
		}
		mk := files["build/targets.mk"]
		mk.Data = regexp.MustCompile(`(?m) \\\n  `+regexp.QuoteMeta(name)+`$| `+regexp.QuoteMeta(name)+` \\\n `).ReplaceAll(mk.Data, nil)
		files["build/targets.mk"] = mk
	}
	if len(o.Platforms) > 0 {
		var err error
		if text, err = narrow(text, o.Platforms); err != nil {
			return err
		}
	}
	host, _, _ := strings.Cut(o.Module, "/")
	text = maintainer.ReplaceAllLiteralString(text, fmt.Sprintf("maintainer: %q", o.Name+" <packages@"+host+">"))
	if o.Registry != "" {
		text = registry.ReplaceAllString(text, "${1}"+o.Registry)
		defaults := files[catalog.KubeadmDefaults]
		defaults.Data = ofRegistry(defaults.Data, o.Registry)
		files[catalog.KubeadmDefaults] = defaults
	}
	if o.FIPS != "" {
		text = strings.Replace(text, "\n  sums:\n", "\n  fips: "+o.FIPS+"\n  sums:\n", 1)
	}
	f.Data = []byte(text)
	files[catalog.File] = f
	return nil
}

// leaveOut removes from release.yaml the programs, images and addons of a name: those of images/NAME, cmd/NAME, or addon NAME. Packages are
// left without these programs. It returns the names of those that have none any more, which are left out, too.
func leaveOut(text, name string) (rest string, packages []string, err error) {
	field := func(it, key string) string {
		if m := regexp.MustCompile(`[{ ]` + key + `: "?([^,"}\n]+)`).FindStringSubmatch(it); m != nil {
			return m[1]
		}
		return ""
	}
	var gone, all []string
	text = item.ReplaceAllStringFunc(text, func(it string) string {
		of := path.Base(field(it, "module"))
		if field(it, "package")+field(it, "test") != "" {
			all = append(all, field(it, "name"))
			if of != "." {
				all = append(all, of)
			}
		} else if field(it, "base") == "" && field(it, "binary") == "" {
			all, of = append(all, field(it, "name")), "" // an addon
		}
		if m := binaries.FindStringSubmatch(it); m != nil { // a package
			left := slices.DeleteFunc(strings.FieldsFunc(m[1], func(r rune) bool { return strings.ContainsRune(", \n", r) }),
				func(b string) bool { return slices.Contains(gone, b) })
			if len(left) == 0 {
				packages = append(packages, field(it, "name"))
				return ""
			}
			return strings.Replace(it, m[1], strings.Join(left, ", "), 1)
		}
		if field(it, "name") != name && of != name && !slices.Contains(gone, field(it, "binary")) {
			return it
		}
		gone = append(gone, field(it, "name"))
		return ""
	})
	if len(gone) == 0 {
		slices.Sort(all)
		return "", nil, suggest.Unknown("component, project or addon", name, slices.Compact(all))
	}
	return text, packages, nil
}

// narrow leaves some platforms in the lists of release.yaml.
func narrow(text string, platforms []string) (string, error) {
	var known []string
	text = list.ReplaceAllStringFunc(text, func(line string) string {
		m := list.FindStringSubmatch(line)
		var kept []string
		for on := range strings.SplitSeq(m[2], ",") {
			on = strings.TrimSpace(on)
			known = append(known, on)
			if slices.Contains(platforms, on) {
				kept = append(kept, on)
			}
		}
		return m[1] + strings.Join(kept, ", ") + m[3]
	})
	for _, on := range platforms {
		if !slices.Contains(known, on) {
			slices.Sort(known)
			return "", suggest.Unknown("platform", on, slices.Compact(known))
		}
	}
	if regexp.MustCompile(`(?m)^  server: (&\w+ )?\[\]`).MatchString(text) {
		return "", badrequest.Mark(fmt.Errorf("platforms %s: a cluster has a server: name one of linux, too", strings.Join(platforms, " ")))
	}
	return text, nil
}
