package site

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"

	"slipway.build/pkg/release"
)

// An Image is an image of a release over all platforms.
type Image struct {
	Name       string // as release.json has it
	Repository string // where it is
	Tag        string // "" if it has none
	SHA256     string // of the index, in hex
}

// ImagesOf returns a release's images, in another repository unless that is "".
func ImagesOf(r *release.Release, repository string) []Image {
	var list []Image
	own := registry(r)
	for _, a := range r.Artifacts {
		if a.Kind != release.Index {
			continue
		}
		i := Image{Name: a.Name, Repository: a.Name, SHA256: a.SHA256}
		if colon := strings.LastIndex(a.Name, ":"); colon > strings.LastIndex(a.Name, "/") {
			i.Repository, i.Tag = a.Name[:colon], a.Name[colon+1:]
		}
		if repository != "" {
			i.Repository = path.Join(repository, strings.TrimPrefix(i.Repository, own+"/"))
		}
		list = append(list, i)
	}
	return list
}

// Repositories returns those that have the image. kubeadm asks for coredns/coredns in upstream's registry alone, and for coredns in others.
func (i Image) Repositories() []string {
	if dir, ok := strings.CutSuffix(i.Repository, "/coredns/coredns"); ok {
		return []string{i.Repository, dir + "/coredns"}
	}
	return []string{i.Repository}
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
	for _, i := range ImagesOf(r, repository) {
		tag := ""
		if i.Tag != "" {
			tag = ":" + i.Tag
		}
		fmt.Fprintf(&b, "%s%s@sha256:%s\n", i.Repository, tag, i.SHA256)
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
	for _, i := range ImagesOf(r, repository) {
		format := ""
		switch path.Base(i.Repository) {
		case "coredns":
			format = "dns:\n  imageRepository: %s\n  imageTag: %s\n"
		case "etcd":
			format = "etcd:\n  local:\n    imageRepository: %s\n    imageTag: %s\n"
		default:
			continue
		}
		fmt.Fprintf(&b, format, path.Dir(i.Repository), i.Tag)
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
