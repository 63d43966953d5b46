package project

import (
	"errors"
	"maps"
	"strings"

	"slipway.build/pkg/make/road"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/imagename"
	"slipway.build/pkg/mechanism/variable"
)

// Settings holds what a user sets with environment variables: Kubernetes' and slipway's own.
type Settings struct {
	Road           string // ROAD: local, container, bazel; empty is local
	Build          road.Options
	DockerRegistry string // KUBE_DOCKER_REGISTRY: images are tagged for it as well
	DockerImageTag string // KUBE_DOCKER_IMAGE_TAG: images are tagged with it as well
	CrossBase      string // KUBE_CROSS_BASE: the image that the build image starts from
	Inputs         string // SLIPWAY_INPUTS: the folder of the inputs, unless the tree has one

	Debian debian.Sources // where Debian packages come from
}

// debug is DBG: 1 keeps symbols in binaries.
var debug = variable.Switch{Name: "DBG", On: "1", Off: "0"}

// SettingsFrom reads the settings from an environment. The error names every invalid value.
func SettingsFrom(getenv func(string) string) (Settings, error) {
	keep, err := debug.Read(getenv)
	s := Settings{
		Road:           getenv("ROAD"),
		Build:          road.Options{Debug: keep, GoFlags: getenv("GOFLAGS"), LDFlags: getenv("GOLDFLAGS"), GCFlags: getenv("GOGCFLAGS")},
		DockerRegistry: getenv("KUBE_DOCKER_REGISTRY"),
		DockerImageTag: getenv("KUBE_DOCKER_IMAGE_TAG"),
		CrossBase:      getenv("KUBE_CROSS_BASE"),
		Inputs:         getenv("SLIPWAY_INPUTS"),
		Debian:         debian.SourcesFrom(getenv),
	}
	return s, errors.Join(err, s.validate())
}

// Variables returns the settings that decide bytes, by the variables' names.
func (s Settings) Variables() map[string]string {
	set := map[string]string{
		"GOFLAGS": s.Build.GoFlags, "GOLDFLAGS": s.Build.LDFlags, "GOGCFLAGS": s.Build.GCFlags,
		"KUBE_DOCKER_REGISTRY": s.DockerRegistry, "KUBE_DOCKER_IMAGE_TAG": s.DockerImageTag,
	}
	if s.Build.Debug {
		set["DBG"] = "1"
	}
	maps.DeleteFunc(set, func(_, value string) bool { return value == "" })
	return set
}

// validate checks names that images and engines would refuse after everything was compiled, and flags of the linker.
func (s Settings) validate() error {
	errs := []error{s.Debian.Check()}
	for _, v := range []struct {
		name, value, want string
		check             func(string) error
	}{
		{"KUBE_DOCKER_REGISTRY", s.DockerRegistry, "a registry's name, such as registry.example.com/team", imagename.Registry},
		{"KUBE_DOCKER_IMAGE_TAG", s.DockerImageTag, "an image tag: letters, digits, and _ . - after the first, at most 128", imagename.Tag},
		{"KUBE_CROSS_BASE", s.CrossBase, "an image's name, such as debian:bookworm-slim", imagename.Reference},
		{"GOLDFLAGS", s.Build.LDFlags, "flags of the linker, such as -s -w", areFlags},
		{"GOGCFLAGS", s.Build.GCFlags, "flags of the compiler, such as -N -l", areFlags},
	} {
		if v.value != "" && v.check(v.value) != nil {
			errs = append(errs, variable.Bad(v.name, v.value, v.want))
		}
	}
	return errors.Join(errs...)
}

func areFlags(text string) error {
	if strings.TrimSpace(text) != "" && !strings.HasPrefix(strings.TrimLeft(text, " '\""), "-") {
		return errors.New("no flag")
	}
	return nil
}
