package provenance

import (
	"crypto/sha256"
	"crypto/sha512"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"slipway.build/pkg/mechanism/recipe"
	"slipway.build/pkg/release"
)

//go:embed *.go
var sources embed.FS

// The code is in keys: it decides the bytes of statements.
var _ = recipe.Of("release/provenance", sources)

// Types in statements. See https://github.com/in-toto/attestation and https://slsa.dev/spec/v1.1/provenance.
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "https://slsa.dev/provenance/v1"
)

// Page is the page that explains build types and builders: a fragment names one.
const Page = "https://slipway.build/docs/provenance"

// Builder is who built: anybody, on a machine of their own. That is what SLSA calls build level 1.
const Builder = Page + "#workstation"

// MaxSubjects is how many subjects clients accept in a statement, such as sigstore-go.
const MaxSubjects = 1024

// maxStatements is how many bytes all statements about a release may have. All of Kubernetes' platforms take a tenth.
const maxStatements = 64 << 20

// Names of statements in a release's folder.
const (
	File   = "provenance.json" // of the whole release
	Folder = "provenance"      // of those of each artifact
)

// A Statement says that subjects were made in one build.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

// A Subject is an artifact by content.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// A Predicate says how the subjects were made.
type Predicate struct {
	Definition Definition `json:"buildDefinition"`
	Details    Details    `json:"runDetails"`
}

// A Definition is all that decides the bytes of the subjects.
type Definition struct {
	BuildType    string     `json:"buildType"`
	Parameters   Parameters `json:"externalParameters"`
	Dependencies []Resource `json:"resolvedDependencies"`
}

// Parameters are what the user chose.
type Parameters struct {
	Version   string            `json:"version"`
	Commit    string            `json:"commit,omitempty"`
	TreeState string            `json:"treeState,omitempty"`
	Date      string            `json:"date"` // of the commit
	Platforms []string          `json:"platforms"`
	Sets      []string          `json:"sets"`
	Inputs    bool              `json:"inputs,omitempty"` // whether kubernetes-inputs.tar is asked for
	Variables map[string]string `json:"variables,omitempty"`
}

// A Resource is something that the subjects were made of.
type Resource struct {
	Name   string            `json:"name"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`

	Annotations map[string]string `json:"annotations,omitempty"` // override: why a module is newer than upstream's
}

// Details say who built.
type Details struct {
	Builder struct {
		ID string `json:"id"`
	} `json:"builder"`
}

// A Made is a statement about a release, or about an artifact of it.
type Made struct {
	File     string // in the release's folder
	Name     string // of what it is about, as files have it; "" is the whole release
	Artifact release.Artifact
	Content  []byte
}

// Files lists the names of the statements about a release, in its folder, sorted. They depend on the names of its artifacts alone.
func Files(r *release.Release) []string {
	var names []string
	for _, m := range List(r) {
		names = append(names, m.File)
	}
	slices.Sort(names)
	return names
}

// List returns the statements about a release, that about all of it first, without their contents.
func List(r *release.Release) []Made {
	all := []Made{{File: File}}
	add := func(name string, a release.Artifact) {
		all = append(all, Made{File: path.Join(Folder, name+".json"), Name: name, Artifact: a})
	}
	files := map[string]string{} // name of an image's archive, by the image
	for _, a := range r.Artifacts {
		if a.Kind == release.Archive && len(a.Of) == 1 {
			files[a.Of[0]] = strings.TrimSuffix(path.Base(a.Name), ".tar")
		}
	}
	for _, a := range r.Artifacts {
		switch a.Kind {
		case release.Tarball, release.Inputs, release.Deb, release.RPM:
			add(path.Base(a.Name), a)
		case release.Image:
			add(files[a.Name]+"-"+a.Platform.Dash(), a)
		case release.Index:
			if len(a.Of) > 0 {
				add(files[a.Of[0]], a)
			}
		}
	}
	return all
}

// Of returns the statements about a release, that about all of it first. Description is the content of its release.json.
func Of(r *release.Release, description []byte) ([]Made, error) {
	whole, err := statement(r)
	if err != nil {
		return nil, err
	}
	whole.Subject = append(whole.Subject, Subject{release.File, map[string]string{
		"sha256": fmt.Sprintf("%x", sha256.Sum256(description)), "sha512": fmt.Sprintf("%x", sha512.Sum512(description)),
	}})
	for _, a := range r.Artifacts {
		if a.Path != "" || a.Kind == release.Image || a.Kind == release.Index {
			whole.Subject = append(whole.Subject, Subject{a.Name, map[string]string{"sha256": a.SHA256, "sha512": a.SHA512}})
		}
	}
	if len(whole.Subject) > MaxSubjects {
		return nil, fmt.Errorf("release %s has %d artifacts: clients refuse a statement about more than %d", r.Version,
			len(whole.Subject), MaxSubjects)
	}
	all := List(r)
	if all[0].Content, err = marshal(whole); err != nil {
		return nil, err
	}
	size := len(all[0].Content)
	origins := release.OriginsOf(r)
	for i := range all[1:] {
		m := &all[1+i]
		part := *r
		part.Inputs, err = origins.Of(m.Artifact)
		if err != nil {
			return nil, err
		}
		s, err := statement(&part)
		if err != nil {
			return nil, err
		}
		// Of an image or index, clients compare the digest alone, and some refuse others beside it.
		digest := map[string]string{"sha256": m.Artifact.SHA256}
		if m.Artifact.Path != "" {
			digest["sha512"] = m.Artifact.SHA512
		}
		s.Subject = []Subject{{m.Artifact.Name, digest}}
		if m.Content, err = marshal(s); err != nil {
			return nil, err
		}
		if size += len(m.Content); size > maxStatements {
			return nil, fmt.Errorf("the statements about release %s take more than %d MiB", r.Version, maxStatements>>20)
		}
	}
	return all, nil
}

func marshal(s *Statement) ([]byte, error) {
	slices.SortFunc(s.Subject, func(a, b Subject) int { return strings.Compare(a.Name, b.Name) })
	return release.EncodeJSON(s, " ")
}

// statement returns the statement about a release, without subjects.
func statement(r *release.Release) (*Statement, error) {
	if r.Compiler != release.Compiler {
		return nil, fmt.Errorf("release.json has the compiler %q, and %q is what slipway releases have", r.Compiler, release.Compiler)
	}
	s := &Statement{Type: StatementType, PredicateType: PredicateType}
	s.Predicate.Details.Builder.ID = Builder
	d := &s.Predicate.Definition
	d.BuildType = Page + "#" + release.Compiler
	d.Parameters = Parameters{
		Version: r.Version, Commit: r.Commit, TreeState: r.TreeState, Date: r.Date.UTC().Format("2006-01-02T15:04:05Z"),
		Platforms: []string{}, Sets: r.Sets, Variables: r.Variables,
		Inputs: slices.ContainsFunc(r.Artifacts, func(a release.Artifact) bool { return a.Kind == release.Inputs }),
	}
	for _, p := range r.Platforms {
		d.Parameters.Platforms = append(d.Parameters.Platforms, p.String())
	}
	if r.Commit != "" {
		d.Dependencies = append(d.Dependencies, Resource{Name: "commit", Digest: map[string]string{"gitCommit": r.Commit}})
	}
	for _, in := range r.Inputs {
		digest, err := digestOf(in)
		if err != nil {
			return nil, err
		}
		var notes map[string]string
		if o, ok := r.Override(in); ok {
			notes = map[string]string{"override": o.String()}
		}
		d.Dependencies = append(d.Dependencies, Resource{in.Name, in.PURL(), digest, notes})
		for _, l := range in.Libraries {
			digest, err := digestOf(l.Module())
			if err != nil {
				return nil, err
			}
			d.Dependencies = append(d.Dependencies, Resource{l.Name, l.Module().PURL(), digest, nil})
		}
	}
	return s, nil
}

// digestOf returns what pins an input. The sum of a module is, in hex, what in-toto calls dirHash.
func digestOf(in release.Input) (map[string]string, error) {
	if in.SHA256 != "" {
		return map[string]string{"sha256": in.SHA256}, nil
	}
	if in.Kind == release.Repository {
		return map[string]string{"gitCommit": in.Commit, "gitTree": in.Tree}, nil
	}
	if in.Kind == release.Tool && in.Sum == "" {
		digest := map[string]string{"sha256": in.Tree}
		if in.Commit != "" {
			digest["gitCommit"] = in.Commit
		}
		return digest, nil
	}
	if in.Sum == "" { // of a module that is a folder of the tree, whose files are in the sources
		return map[string]string{}, nil
	}
	sum, ok := strings.CutPrefix(in.Sum, "h1:")
	hash, err := base64.StdEncoding.DecodeString(sum)
	if !ok || err != nil || len(hash) != sha256.Size {
		return nil, fmt.Errorf("%s: %q is not the sum of a module", in.Name, in.Sum)
	}
	return map[string]string{"dirHash": hex.EncodeToString(hash)}, nil
}

// Unmarshal reads a statement, strictly: what is not known in it is an error.
func Unmarshal(data []byte) (*Statement, error) {
	var s Statement
	if err := release.DecodeJSON(data, &s); err != nil {
		return nil, fmt.Errorf("not a statement of slipway's: %w", err)
	}
	if s.Type != StatementType || s.PredicateType != PredicateType || !strings.HasPrefix(s.Predicate.Definition.BuildType, Page+"#") {
		return nil, fmt.Errorf("not a statement of slipway's: it is of %s, %s, and the build type %s", s.Type, s.PredicateType,
			s.Predicate.Definition.BuildType)
	}
	return &s, nil
}

// Check returns an error if the statement is one that nobody should trust, whoever signed it: if it is of a build type that is not known,
// or if something that the subjects were made of is not pinned by a digest.
func (s *Statement) Check() error {
	d := s.Predicate.Definition
	if d.BuildType != Page+"#"+release.Compiler {
		return fmt.Errorf("the build type %s is not known", d.BuildType)
	}
	if s.Predicate.Details.Builder.ID != Builder {
		return fmt.Errorf("the builder %s is not known", s.Predicate.Details.Builder.ID)
	}
	for name := range d.Parameters.Variables {
		if !slices.Contains(release.VariableNames(), name) {
			return fmt.Errorf("the parameter %s is not known", name)
		}
	}
	for _, r := range d.Dependencies {
		if len(r.Digest) == 0 && !isFolder(r.Name) {
			return fmt.Errorf("%s is not pinned", r.Name)
		}
	}
	return nil
}

// isFolder reports whether an input is a folder of the tree in place of a module. Its files are among the sources.
func isFolder(name string) bool {
	return strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../")
}
