package release

import (
	"embed"
	"fmt"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/mechanism/recipe"
)

//go:embed *.go
var sources embed.FS

// The code is in keys: it decides the form of release.json, and how its inputs are named elsewhere.
var _ = recipe.Of("release", sources)

// File is the name of the file that describes a release, in the release's folder.
const File = "release.json"

// Format is the version of the file's format. Readers refuse other versions.
const Format = 1

// Compiler is that of every release: all roads make the bytes of the go command.
const Compiler = "go"

// A Release is everything that was made from one commit.
type Release struct {
	Format     int       `json:"format" jsonschema:"version of this file's format"`
	Version    string    `json:"version" jsonschema:"the release's version, such as v1.37.0+acme.1"`
	Commit     string    `json:"commit,omitempty" jsonschema:"the commit of the tree, in hex"`
	TreeState  string    `json:"treeState,omitempty" jsonschema:"clean, dirty, or archive"`
	Date       time.Time `json:"date" jsonschema:"time of the commit, and of every file in the release"`
	Kubernetes string    `json:"kubernetes" jsonschema:"version of k8s.io/kubernetes that the components are compiled from"`
	Go         string    `json:"go" jsonschema:"version of Go that compiled the binaries"`
	Embargo    time.Time `json:"embargo,omitzero" jsonschema:"absent, or the time before which nothing of the release may be signed or published"`
	FIPS       *FIPS     `json:"fips,omitempty" jsonschema:"absent unless programs are compiled for FIPS mode"`
	Compiler   string    `json:"compiler,omitempty" jsonschema:"whose bytes the binaries have: go, those of the go command, by every road"`

	Platforms []platform.Platform `json:"platforms" jsonschema:"platforms of the release, as in linux/amd64"`
	Sets      []string            `json:"sets,omitempty" jsonschema:"which tarballs there are for a platform: server, node, client, test, addons"`
	Variables map[string]string   `json:"variables,omitempty" jsonschema:"variables that the user set and that decide bytes"`
	Artifacts []Artifact          `json:"artifacts" jsonschema:"what the release consists of, by name"`
	Inputs    []Input             `json:"inputs" jsonschema:"what the artifacts were made from"`
	Overrides []Override          `json:"overrides,omitempty" jsonschema:"modules newer than upstream selected, or from a fork"`

	BasePackages BasePackages `json:"basePackages,omitzero" jsonschema:"absent unless there are debs or rpms: packages that they may require though repositories of the release lack them"`
}

// BasePackages are names of packages that systems have, or find in their own repositories, by format.
type BasePackages struct {
	Deb []string `json:"deb,omitempty" jsonschema:"as Debian calls them"`
	RPM []string `json:"rpm,omitempty" jsonschema:"as distributions with rpm call them"`
}

// An Override is a module that the tree raises above the version that upstream selected, or whose code comes from a fork.
type Override struct {
	Module  string   `json:"module" jsonschema:"its path"`
	Version string   `json:"version" jsonschema:"it is this, or newer; exactly this if there is a with"`
	With    string   `json:"with,omitempty" jsonschema:"the module whose code replaces it, a fork, as PATH@VERSION"`
	Fixes   []string `json:"fixes,omitempty" jsonschema:"vulnerabilities, such as CVE-2026-12345"`
	Reason  string   `json:"reason,omitempty" jsonschema:"why, in a line"`
	In      []string `json:"in,omitempty" jsonschema:"folders of the tree's go.mod files that it is in; absent: all"`
}

// String says why there is an override, in a line.
func (o Override) String() string {
	text := "raised above upstream's version"
	if o.With != "" {
		text = "replaced by " + o.With
	}
	if o.Reason != "" {
		text += ": " + o.Reason
	}
	if len(o.Fixes) > 0 {
		text += "; fixes " + strings.Join(o.Fixes, ", ")
	}
	return text
}

// Override returns the override that a module among the inputs is there for, with patches or without.
func (r *Release) Override(in Input) (Override, bool) {
	for _, o := range r.Overrides {
		wanted := o.Module + "@" + o.Version
		here := in.Name+"@"+in.Version == wanted || in.Name == o.Module && in.Replaces == wanted
		if fork, _, ok := strings.Cut(o.With, "@"); ok {
			here = in.Name == fork && in.Replaces == wanted
		}
		if in.Kind == Module && here {
			return o, true
		}
	}
	return Override{}, false
}

// An EmbargoError says that a release may not be signed or published yet.
type EmbargoError struct {
	Version string
	Until   time.Time
}

func (e *EmbargoError) Error() string {
	return fmt.Sprintf("release %s is under embargo until %s", e.Version, e.Until.Format(time.RFC3339))
}

// CheckEmbargo returns an *[EmbargoError] if the release is under embargo at a time.
func (r *Release) CheckEmbargo(now time.Time) error {
	if now.Before(r.Embargo) {
		return &EmbargoError{r.Version, r.Embargo}
	}
	return nil
}

// FIPSMode is a variable for the environment of a Go program, which then runs in FIPS mode.
const FIPSMode = "GODEBUG=fips140=on"

// FIPS says how programs use Go's cryptographic module. They run in FIPS mode unless their environment says otherwise.
type FIPS struct {
	Version     string `json:"version" jsonschema:"version of golang.org/fips140 that components are compiled with, as in go version -m"`
	Projects    bool   `json:"projects,omitempty" jsonschema:"so are the programs of other projects"`
	Environment bool   `json:"environment,omitempty" jsonschema:"images and units ask for FIPS mode"`
}

// A Kind says what an artifact is.
type Kind string

// The kinds of artifacts.
const (
	Tarball Kind = "tarball" // a file of the release's folder
	Inputs  Kind = "inputs"  // a tarball of the tree and everything that it is made of
	SBOM    Kind = "sbom"    // a bill of materials of other artifacts
	Sums    Kind = "sums"    // a file of checksums, in the form of sha256sum
	Binary  Kind = "binary"  // a program, inside tarballs and images
	Archive Kind = "archive" // an image as an archive for docker load and ctr images import, inside tarballs
	Image   Kind = "image"   // a container image of one platform: its manifest
	Index   Kind = "index"   // a container image over all its platforms: its image index
	Deb     Kind = "deb"     // a package for Debian's package manager
	RPM     Kind = "rpm"     // a package for rpm, unsigned
)

// An Artifact is a file, an image or an image index that a release consists of.
type Artifact struct {
	Name      string            `json:"name" jsonschema:"unique in the release"`
	Kind      Kind              `json:"kind" jsonschema:"tarball, inputs, sbom, sums, binary, archive, image, index, deb or rpm"`
	Platform  platform.Platform `json:"platform,omitzero" jsonschema:"absent if it is the same for all"`
	MediaType string            `json:"mediaType" jsonschema:"IANA or OCI media type"`
	Size      int64             `json:"size" jsonschema:"bytes; of an image or index, of its manifest"`
	SHA256    string            `json:"sha256" jsonschema:"in hex; of an image or index, its digest"`
	SHA512    string            `json:"sha512" jsonschema:"in hex; of an image or index, of its manifest"`
	Path      string            `json:"path,omitempty" jsonschema:"in the release's folder; absent if the artifact is only inside others"`
	Of        []string          `json:"of,omitempty" jsonschema:"names of the artifacts that it consists of or is about"`
	Action    string            `json:"action" jsonschema:"the action that made it"`
	Package   string            `json:"package,omitempty" jsonschema:"of a binary: import path of its main package; of compiled tests, that of the tested package and .test"`
	Flags     []string          `json:"flags,omitempty" jsonschema:"of a binary: flags of the go command that decide its bytes, besides the version in it"`
	Inputs    []string          `json:"inputs,omitempty" jsonschema:"package URLs of the inputs in it: the modules that a binary links, the packages in an image"`

	Identity *Identity `json:"identity,omitempty" jsonschema:"of a deb or an rpm: what package managers call it"`

	Members []Member `json:"members,omitempty" jsonschema:"of a tarball, a deb or an rpm: where it holds other artifacts"`
	Config  string   `json:"config,omitempty" jsonschema:"of an image: digest of its configuration, which is its ID in engines"`
	Layers  []Layer  `json:"layers,omitempty" jsonschema:"of an image: its layers, lowest first"`
}

// PackageFolder is the folder of debs and rpms, in the release's folder.
const PackageFolder = "packages"

// An Identity is what package managers call a package.
type Identity struct {
	Name    string `json:"name" jsonschema:"of the package"`
	Version string `json:"version" jsonschema:"with the revision, such as 1.37.2+acme.1-1"`
	Arch    string `json:"arch" jsonschema:"the architecture as the package manager calls it, such as ppc64el"`
}

// A Member is an artifact in a tarball or a package.
type Member struct {
	Path     string `json:"path" jsonschema:"name of the member"`
	Artifact string `json:"artifact" jsonschema:"name of the artifact"`
}

// A Layer is a layer of an image.
type Layer struct {
	MediaType string `json:"mediaType" jsonschema:"OCI media type"`
	Size      int64  `json:"size" jsonschema:"bytes, as it is stored"`
	Digest    string `json:"digest" jsonschema:"sha256:HEX of the layer as it is stored"`
	DiffID    string `json:"diffID" jsonschema:"sha256:HEX of the layer's tar"`
}

// An InputKind says what an input is.
type InputKind string

// The kinds of inputs.
const (
	Source     InputKind = "source"     // the tree, as the tarball of its sources
	Module     InputKind = "module"     // a Go module that a binary links
	Toolchain  InputKind = "toolchain"  // Go for a host that may have compiled
	Debian     InputKind = "debian"     // a Debian package with files in an image
	Patch      InputKind = "patch"      // a patch of modules
	Tool       InputKind = "tool"       // slipway
	Repository InputKind = "repository" // a commit of git that modules are made of
)

// An Input is something that artifacts were made from.
type Input struct {
	Kind          InputKind         `json:"kind" jsonschema:"source, module, toolchain, debian, patch, tool or repository"`
	Name          string            `json:"name" jsonschema:"file name, module path, or package name; of a patch, its path in the tree; of a repository, its address"`
	Version       string            `json:"version,omitempty" jsonschema:"as the module or package has it; of a tool that is no version of a module, the folder of its code; of a repository, the tag or branch, if one was asked for"`
	Platform      platform.Platform `json:"platform,omitzero" jsonschema:"of a toolchain the host, of a Debian package what it is for; absent if it is for all"`
	Sum           string            `json:"sum,omitempty" jsonschema:"of a module, toolchain or tool: h1:… as go.sum has it"`
	SHA256        string            `json:"sha256,omitempty" jsonschema:"of a file, in hex"`
	Replaces      string            `json:"replaces,omitempty" jsonschema:"of a module or tool: what it stands in for, as PATH@VERSION"`
	Source        string            `json:"source,omitempty" jsonschema:"of a Debian package: the source package that it is built from"`
	SourceVersion string            `json:"sourceVersion,omitempty" jsonschema:"of a Debian package: the version of its source package, if it differs"`
	Suite         string            `json:"suite,omitempty" jsonschema:"of a Debian package: the suite that it is from, or fixes, such as trixie"`
	License       string            `json:"license,omitempty" jsonschema:"of a source, module, toolchain or Debian package: SPDX expression of the licenses of its code; NOASSERTION if the copyright file of a package is not machine-readable"`
	Commit        string            `json:"commit,omitempty" jsonschema:"of a repository, or of a tool that is no version of a module: the commit of its code, in hex"`
	Tree          string            `json:"tree,omitempty" jsonschema:"of a source, or of a tool that is no version of a module: SHA-256, in hex, of a list of all files that may have been read in the tree, and their contents; that of the tarball's members, unless the tree was dirty; of a repository: the commit's tree, as git names it"`
	Changes       []string          `json:"changes,omitempty" jsonschema:"of a patch: paths of the modules that it changes; of a repository: of those that are made of it"`
	Fixes         []string          `json:"fixes,omitempty" jsonschema:"of a patch: vulnerabilities that it mends, as its author says, such as CVE-2026-12345"`
	Libraries     []Library         `json:"libraries,omitempty" jsonschema:"of a tool: the modules that it links, on any system"`
}

// A Library is a Go module that a tool links.
type Library struct {
	Name    string `json:"name" jsonschema:"path of the module"`
	Version string `json:"version" jsonschema:"of the module"`
	Sum     string `json:"sum" jsonschema:"h1:… as go.sum has it"`
}

// Module returns the library as an input of its own.
func (l Library) Module() Input {
	return Input{Kind: Module, Name: l.Name, Version: l.Version, Sum: l.Sum}
}

// VariableNames lists the variables that decide bytes, which a release names if the user set them.
func VariableNames() []string {
	return []string{"DBG", "GOFLAGS", "GOLDFLAGS", "GOGCFLAGS", "KUBE_DOCKER_IMAGE_TAG", "KUBE_DOCKER_REGISTRY"}
}

// Select returns the artifacts of a kind for a platform, in the release's order. The zero platform selects all.
func (r *Release) Select(kind Kind, on platform.Platform) []Artifact {
	var selected []Artifact
	for _, a := range r.Artifacts {
		if a.Kind == kind && (on == platform.Platform{} || a.Platform == on) {
			selected = append(selected, a)
		}
	}
	return selected
}

// Artifact returns the artifact of that name.
func (r *Release) Artifact(name string) (Artifact, bool) {
	for _, a := range r.Artifacts {
		if a.Name == name {
			return a, true
		}
	}
	return Artifact{}, false
}
