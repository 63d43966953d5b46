package site

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"

	"slipway.build/pkg/release"
)

// An image is an image of a release over all platforms.
type image struct{ repository, tag, digest string }

// indexes returns a release's images, in another repository unless that is "".
func indexes(r *release.Release, repository string) []image {
	var list []image
	own := registry(r)
	for _, a := range r.Artifacts {
		if a.Kind != release.Index {
			continue
		}
		i := image{repository: a.Name, digest: "sha256:" + a.SHA256}
		if colon := strings.LastIndex(a.Name, ":"); colon > strings.LastIndex(a.Name, "/") {
			i.repository, i.tag = a.Name[:colon], a.Name[colon:]
		}
		if repository != "" {
			i.repository = path.Join(repository, strings.TrimPrefix(i.repository, own+"/"))
		}
		list = append(list, i)
	}
	return list
}

// registry returns the repository below which all images of a release are, such as registry.k8s.io; "" if there is none.
func registry(r *release.Release) string {
	var common []string
	first := true
	for _, a := range r.Artifacts {
		if a.Kind != release.Index {
			continue
		}
		parts := strings.Split(a.Name, "/")
		parts = parts[:len(parts)-1]
		if first {
			common, first = parts, false
		}
		n := 0
		for n < min(len(common), len(parts)) && common[n] == parts[n] {
			n++
		}
		common = common[:n]
	}
	return strings.Join(common, "/")
}

// images returns the content of images.txt.
func images(r *release.Release, repository string) []byte {
	var b bytes.Buffer
	for _, i := range indexes(r, repository) {
		fmt.Fprintf(&b, "%s%s@%s\n", i.repository, i.tag, i.digest)
	}
	return b.Bytes()
}

// kubeadm returns the content of kubeadm.yaml, which kubeadm init --config reads. kubeadm has versions of etcd and CoreDNS of its own, so
// the release's are named, too.
func kubeadm(r *release.Release, repository string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: %s\n", r.Version)
	if own := registry(r); repository == "" {
		repository = own
	}
	if repository != "" {
		fmt.Fprintf(&b, "%s%s\n", repositoryKey, repository)
	}
	for _, i := range indexes(r, repository) {
		format := ""
		switch path.Base(i.repository) {
		case "coredns":
			format = "dns:\n  imageRepository: %s\n  imageTag: %s\n"
		case "etcd":
			format = "etcd:\n  local:\n    imageRepository: %s\n    imageTag: %s\n"
		default:
			continue
		}
		fmt.Fprintf(&b, format, path.Dir(i.repository), strings.TrimPrefix(i.tag, ":"))
	}
	return b.Bytes()
}

const repositoryKey = "imageRepository: "

var repositoryLine = regexp.MustCompile(`(?m)^` + repositoryKey + `([a-zA-Z0-9./:_-]+)$`)

// Repository returns the repository that a kubeadm.yaml says a release's images are in, or "" if that is where release.json says. Only
// release.json is signed: whoever can write to a site can name another repository there, which may have other images for the same tags.
func Repository(r *release.Release, kubeadm []byte) string {
	m := repositoryLine.FindSubmatch(kubeadm)
	if m == nil || string(m[1]) == registry(r) {
		return ""
	}
	return string(m[1])
}
