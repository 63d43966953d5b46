package image

import (
	"io/fs"
	"maps"
	"slices"
	"time"

	"slipway.build/pkg/mechanism/archive"
)

// A Program is a binary, and others that go with it, with what its image says about it.
type Program struct {
	Binaries []Binary // the first one is started
	Title    string   // for people
	User     string   // UID:GID; empty is root

	Entrypoint []string // instead of the first binary
	Arguments  []string // that it gets where nobody gives others
	SetUID     bool     // the first binary runs as root, whoever starts it

	OS, Arch string // as GOOS and GOARCH

	Version  string // v1.36.0
	Licenses string // SPDX expression; empty if there are too many for one
	Revision string // commit; may be empty
	Source   string // URL of the repository; may be empty
	Created  time.Time
}

// A Binary is one in an image.
type Binary struct {
	Name string // in the image
	File string
}

// Component is the image of one program on a base, as Kubernetes has its own: the program is the entrypoint and in
// PATH (kubeadm's static pods run it by its name alone). kube-log-runner, where it goes with it, is also /go-runner, which is
// what existing manifests call to send output to a file. Without a base, the program is at the root: runtimes that start
// sandboxes themselves call it /pause.
//
// A program without binaries is one of the base, and has an entrypoint.
//
// The program is the last layer, so that images of one release and platform share the others.
func Component(base []Layer, p Program) Spec {
	folder := "usr/local/bin/"
	if len(base) == 0 {
		folder = ""
	}
	layers := slices.Clone(base)
	entrypoint := p.Entrypoint
	if len(entrypoint) == 0 && len(p.Binaries) > 0 {
		entrypoint = []string{"/" + folder + p.Binaries[0].Name}
	}
	for i, b := range slices.Backward(p.Binaries) {
		mode := fs.FileMode(0o755)
		if p.SetUID && i == 0 {
			mode |= fs.ModeSetuid
		}
		layer := Layer{Comment: b.Name, Entries: []archive.Entry{{Name: folder + b.Name, Mode: mode, Path: b.File}}}
		if b.Name == "kube-log-runner" {
			layer.Entries = append(layer.Entries, archive.Entry{Name: "go-runner", Mode: fs.ModeSymlink | 0o777, Link: "/" + folder + b.Name})
		}
		layers = append(layers, layer)
	}
	return Spec{
		OS:         p.OS,
		Arch:       p.Arch,
		Layers:     layers,
		Entrypoint: entrypoint,
		Cmd:        p.Arguments,
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		User:       p.User,
		WorkingDir: "/",
		Labels:     p.labels(),
		Created:    p.Created,
	}
}

func (p Program) labels() map[string]string {
	const prefix = "org.opencontainers.image."
	labels := map[string]string{
		prefix + "title":    p.Title,
		prefix + "version":  p.Version,
		prefix + "revision": p.Revision,
		prefix + "source":   p.Source,
		prefix + "created":  p.Created.UTC().Format(time.RFC3339),
		prefix + "licenses": p.Licenses,
	}
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	return labels
}

// Tags are the names an image is known by: one that is the same for all architectures, as manifests have it, and one
// that is its own, for machines that hold several.
func Tags(registry, name, arch, tag string) []string {
	return []string{
		registry + "/" + name + "-" + arch + ":" + tag,
		registry + "/" + name + ":" + tag,
	}
}
