package image

import (
	"io/fs"
	"maps"
	"time"

	"slipway.build/pkg/archive"
)

// A Program is a binary with what its image says about it.
type Program struct {
	Name      string // of the binary in the image
	Title     string // for people
	Binary    string // file
	LogRunner string // file: kube-log-runner for the same platform
	OS, Arch  string // as GOOS and GOARCH

	Version  string // v1.36.0
	Revision string // commit; may be empty
	Source   string // URL of the repository; may be empty
	Created  time.Time
}

const bin = "usr/local/bin"

// Component is the image of one program on a base, as Kubernetes has its own: the program is the entrypoint and in
// PATH (kubeadm's static pods run it by its name alone), and kube-log-runner is at hand, also as /go-runner, which is
// what existing manifests call to send output to a file. It runs as root, unless a manifest says otherwise.
//
// The binary is the last layer, so that images of one release and platform share the others.
func Component(base Layer, p Program) Spec {
	return Spec{
		OS:   p.OS,
		Arch: p.Arch,
		Layers: []Layer{
			base,
			{Comment: "kube-log-runner", Entries: []archive.Entry{
				{Name: bin + "/kube-log-runner", Mode: 0o755, Path: p.LogRunner},
				{Name: "go-runner", Mode: fs.ModeSymlink | 0o777, Link: "/" + bin + "/kube-log-runner"},
			}},
			{Comment: p.Name, Entries: []archive.Entry{
				{Name: bin + "/" + p.Name, Mode: 0o755, Path: p.Binary},
			}},
		},
		Entrypoint: []string{"/" + bin + "/" + p.Name},
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
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
		prefix + "licenses": "Apache-2.0",
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
