package gitsource

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/git"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/mechanism/tail"
	"slipway.build/pkg/tree/catalog"
)

// A Request names a commit.
type Request struct {
	Repository string // a URL that git can fetch, or a folder
	Ref        string // a tag, a branch or a commit; empty: the tag Version, or what is checked out if that is empty, too
	Version    string // of k8s.io/kubernetes at the commit; empty: its tag
}

// A Found commit is there, and has a version.
type Found struct {
	catalog.Source          // without the tree, which Make finds
	Version        string   // of k8s.io/kubernetes
	Tagged         bool     // the version is a tag of the commit
	Notes          []string // what a maintainer should know
}

// Parse reads REPOSITORY or REPOSITORY#REF. A folder becomes absolute.
func Parse(text string) (Request, error) {
	at, ref, hasRef := strings.Cut(text, "#")
	switch u, err := url.Parse(at); {
	case at == "" || strings.HasPrefix(at, "-"), hasRef && ref == "", strings.HasPrefix(ref, "-"):
		return Request{}, badrequest.Mark(fmt.Errorf("%q is not REPOSITORY or REPOSITORY#REF", tail.Redact(text)))
	case err == nil && u.User != nil && has(u.User.Password()):
		return Request{}, badrequest.Mark(fmt.Errorf("%s: an address with a password would be in release.yaml for all to read: "+
			"give it to a credential helper of git", tail.Redact(at)))
	case isRemote(at):
		return Request{Repository: at, Ref: ref}, nil
	}
	dir, err := filepath.Abs(at)
	if err != nil {
		return Request{}, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return Request{}, badrequest.Mark(fmt.Errorf("%s is neither a folder nor a URL", at))
	}
	return Request{Repository: dir, Ref: ref}, nil
}

func has(_ string, ok bool) bool { return ok }

// isRemote reports whether an address is a URL, or HOST:PATH. As for git, ./a:b is a folder.
func isRemote(address string) bool {
	host, path, ok := strings.Cut(address, ":")
	return ok && (strings.HasPrefix(path, "//") || !strings.Contains(host, "/"))
}

// isFolder reports whether a repository is read in place.
func isFolder(repository string) bool { return filepath.IsAbs(repository) }

// refs are what a repository has names for: commits, by name.
type refs struct {
	head        string
	tags, heads map[string]string
}

var commitID = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// Find looks for a commit and its version. A commit without a tag that is a version needs one in the request, which must be a pre-release:
// upstream's releases are tagged. The error is a bad request if the repository does not have what was asked for.
func Find(ctx context.Context, r Request) (*Found, error) {
	all, err := list(ctx, r.Repository)
	if err != nil {
		return nil, err
	}
	f := &Found{Source: catalog.Source{Repository: r.Repository, Ref: r.Ref}, Version: r.Version}
	if f.Ref == "" {
		f.Ref = r.Version
	}
	if f.Commit, err = all.commit(ctx, r, f.Ref); err != nil {
		return nil, err
	}
	if f.Ref == f.Commit {
		f.Ref = ""
	}
	var tags []string // the commit's, that are versions
	for name, commit := range all.tags {
		if commit == f.Commit && isVersion(name) {
			tags = append(tags, name)
		}
	}
	semver.Sort(tags)
	switch {
	case f.Version == "" && len(tags) == 0:
		return nil, badrequest.Mark(fmt.Errorf("%s has no tag that is a version: give the version, a pre-release such as %s",
			f, example(all.tags)))
	case f.Version == "":
		f.Version = tags[len(tags)-1]
	case !isVersion(f.Version):
		return nil, badrequest.Mark(fmt.Errorf("%q is not a version of Kubernetes as Go has them, like v1.37.3 or v1.37.3-0.acme.1", f.Version))
	case semver.Prerelease(f.Version) == "" && !slices.Contains(tags, f.Version):
		return nil, badrequest.Mark(fmt.Errorf("%s does not have the tag %s: give it a version of its own, a pre-release such as %s",
			f, f.Version, own(f.Version, all.tags)))
	}
	f.Tagged = slices.Contains(tags, f.Version)
	if isFolder(f.Repository) {
		f.Notes, err = uncommitted(ctx, f.Repository)
	}
	return f, err
}

// String names the commit for messages.
func (f *Found) String() string {
	name := "commit " + f.Commit[:12]
	if f.Ref != "" {
		name = fmt.Sprintf("%s (%s)", f.Ref, name)
	}
	return fmt.Sprintf("%s of %s", name, tail.Redact(f.Repository))
}

// isVersion reports whether a name is a version of Kubernetes that Go takes for a module.
func isVersion(name string) bool {
	return semver.Canonical(name) == name && semver.Major(name) == "v1" && name != ""
}

// example returns a version for a commit on top of the newest tag.
func example(tags map[string]string) string {
	var versions []string
	for name := range tags {
		if isVersion(name) && semver.Prerelease(name) == "" {
			versions = append(versions, name)
		}
	}
	if len(versions) == 0 {
		return "v1.37.3-0.acme.1"
	}
	semver.Sort(versions)
	return own(versions[len(versions)-1], tags)
}

// own returns a version below a release that has no tag yet, or below the patch after one that has.
func own(version string, tags map[string]string) string {
	var major, minor, patch int
	_, _ = fmt.Sscanf(version, "v%d.%d.%d", &major, &minor, &patch) // isVersion has read it
	if tags[version] != "" {
		patch++
	}
	return fmt.Sprintf("v%d.%d.%d-0.acme.1", major, minor, patch)
}

// list asks a repository for its names.
func list(ctx context.Context, repository string) (*refs, error) {
	repo, err := git.Open(os.TempDir(), environ()...)
	if err != nil {
		return nil, err
	}
	out, err := repo.Run(ctx, "ls-remote", "--quiet", "--", repository)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its tags and branches: %w", tail.Redact(repository), problem(err))
	}
	all := &refs{tags: map[string]string{}, heads: map[string]string{}}
	for line := range strings.Lines(string(out)) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if tag, ok := strings.CutPrefix(name, "refs/tags/"); ok {
			all.tags[strings.TrimSuffix(tag, "^{}")] = id // the commit follows the object of an annotated tag
		} else if head, ok := strings.CutPrefix(name, "refs/heads/"); ok {
			all.heads[head] = id
		} else if name == "HEAD" {
			all.head = id
		}
	}
	return all, nil
}

// commit returns the commit that a name stands for.
func (all *refs) commit(ctx context.Context, r Request, name string) (string, error) {
	where := tail.Redact(r.Repository)
	for _, known := range []map[string]string{all.tags, all.heads} {
		if id := known[strings.TrimPrefix(strings.TrimPrefix(name, "refs/tags/"), "refs/heads/")]; id != "" {
			return id, nil
		}
	}
	switch {
	case name == "" && all.head != "":
		return all.head, nil
	case name == "":
		return "", badrequest.Mark(fmt.Errorf("%s has no commit", where))
	case r.Ref == "":
		return "", badrequest.Mark(fmt.Errorf("%s has no tag %s: name a branch or a commit, as in %s#main", where, name, where))
	case isFolder(r.Repository):
		return resolve(ctx, r.Repository, name, all)
	case commitID.MatchString(name):
		return name, nil
	}
	return "", badrequest.Mark(all.unknown(where, name))
}

func (all *refs) unknown(where, name string) error {
	var names []string
	for _, known := range []map[string]string{all.tags, all.heads} {
		for known := range known {
			names = append(names, known)
		}
	}
	return fmt.Errorf("%s has no tag, branch or commit %s%s", where, name, suggest.DidYouMean(suggest.Near(name, names)))
}

// resolve reads whatever git calls a commit in a folder.
func resolve(ctx context.Context, dir, name string, all *refs) (string, error) {
	repo, err := git.Open(dir, environ()...)
	if err != nil {
		return "", err
	}
	id, err := repo.Line(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if err == nil && commitID.MatchString(id) {
		return id, nil
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	failed := all.unknown(dir, name)
	if shallow, _ := repo.Line(ctx, "rev-parse", "--is-shallow-repository"); shallow == "true" {
		failed = fmt.Errorf("%w: it is a shallow clone, without most of the history: git fetch --unshallow completes it", failed)
	}
	return "", badrequest.Mark(failed)
}

// uncommitted notes changes in a folder that are not in any commit. A bare repository has none.
func uncommitted(ctx context.Context, dir string) ([]string, error) {
	repo, err := git.Open(dir, append(environ(), "GIT_OPTIONAL_LOCKS=0")...)
	if err != nil {
		return nil, err
	}
	if bare, err := repo.Line(ctx, "rev-parse", "--is-bare-repository"); err != nil || bare == "true" {
		return nil, problem(err)
	}
	out, err := repo.Line(ctx, "status", "--porcelain")
	if err != nil || out == "" {
		return nil, problem(err)
	}
	_, first, _ := strings.Cut(strings.TrimSpace(strings.SplitN(out, "\n", 2)[0]), " ")
	return []string{fmt.Sprintf("%s has changes that are not committed, such as %s: they do not count", dir, strings.TrimSpace(first))}, nil
}

// problem returns what git printed instead of how it ended, if it printed anything.
func problem(err error) error {
	if e, ok := errors.AsType[*git.Error](err); ok && e.Problem != "" {
		return errors.New(tail.Redact(e.Problem))
	}
	return err
}

// Variables that say which repository git works in, as it sets them for hooks.
var repositoryVariables = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR",
	"GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_CEILING_DIRECTORIES", "GIT_TERMINAL_PROMPT", "LC_ALL",
}

// environ returns the user's environment: git needs credentials, certificates, proxies and whatever helpers of it use.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(repositoryVariables, name)
	})
}
