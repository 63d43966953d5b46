package image

import (
	"io/fs"
	"maps"
	"slices"
	"time"

	"slipway.build/pkg/mechanism/archive"
)

// A Program is a binary, perhaps with further ones, and what its image says about it.
type Program struct {
	Binaries []Binary // the first one is started
	Title    string   // for people
	User     string   // UID:GID; empty is root

	Entrypoint []string // instead of the first binary
	Arguments  []string // default arguments
	Env        []string `json:",omitempty"` // NAME=VALUE, besides PATH
	SetUID     bool     // the first binary runs as root, no matter who starts it

	OS, Arch string // as GOOS and GOARCH

	Version  string    // v1.36.0
	Licenses string    // SPDX expression; may be empty
	Revision string    // commit; may be empty
	Source   string    // URL of the repository; may be empty
	Created  time.Time // of the image, and of every file in it
}

// A Binary is a program's file.
type Binary struct {
	Name string // in the image
	File string
	Sum  string // SHA-256 of the file, in hexadecimal; empty: not known
}

// Component returns the contents of an image that starts a program, in the form of Kubernetes' own images: the program is
// the entrypoint and in PATH, as kubeadm's static pods run it by its name alone. kube-log-runner is also /go-runner, which
// existing manifests call to send output to a file. Without a base, the program is at the root: container runtimes call
// the sandbox's program /pause.
//
// A program without binaries is one of the base's, and has an entrypoint.
//
// The program is the last layer, so that images of one release and platform share all other layers.
func Component(base []Layer, p Program) Contents {
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
		layer := Layer{Comment: b.Name, Entries: []archive.Entry{{Name: folder + b.Name, Mode: mode, Path: b.File, Sum: b.Sum}}}
		if b.Name == "kube-log-runner" {
			layer.Entries = append(layer.Entries, archive.Entry{Name: "go-runner", Mode: fs.ModeSymlink | 0o777, Link: "/" + folder + b.Name})
		}
		layers = append(layers, layer)
	}
	return Contents{
		OS:         p.OS,
		Arch:       p.Arch,
		Layers:     layers,
		Entrypoint: entrypoint,
		Cmd:        p.Arguments,
		Env:        append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, p.Env...),
		User:       p.User,
		WorkingDir: "/",
		Labels:     p.labels(),
		Created:    p.Created,
	}
}

const labelPrefix = "org.opencontainers.image."

func (p Program) labels() map[string]string {
	labels := map[string]string{
		labelPrefix + "title":    p.Title,
		labelPrefix + "version":  p.Version,
		labelPrefix + "revision": p.Revision,
		labelPrefix + "source":   p.Source,
		labelPrefix + "created":  p.Created.UTC().Format(time.RFC3339),
		labelPrefix + "licenses": p.Licenses,
	}
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	return labels
}

// Tags returns the names of an image in a docker archive: one for its architecture alone, for machines that hold several,
// and one that is the same for all architectures, for manifests.
func Tags(registry, name, arch, tag string) []string {
	return []string{
		registry + "/" + name + "-" + arch + ":" + tag,
		registry + "/" + name + ":" + tag,
	}
}
