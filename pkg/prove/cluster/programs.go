package cluster

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/prove/cluster/kubeadm"
	"slipway.build/pkg/prove/cluster/machine"
)

// A Program is a program of a cluster that does not come from the release. A copy of it is in the cluster's folder.
type Program struct {
	Name    string    `json:"name"`
	SHA256  string    `json:"sha256"`
	From    string    `json:"from"`    // the file that it was copied from
	Version string    `json:"version"` // what a program of Kubernetes prints; for other projects, what Go wrote into the program
	Since   time.Time `json:"since"`
	Image   string    `json:"image,omitempty"` // that has it, if it runs in containers
}

// current returns the program that a cluster runs instead of the release's, or nil.
func (s *State) current(name string) *Program {
	s.mu.Lock()
	defer s.mu.Unlock()
	return find(slices.Concat(s.Replaced, s.Programs), name)
}

// original returns the program that Up took from a folder instead of the release, or nil.
func (s *State) original(name string) *Program {
	s.mu.Lock()
	defer s.mu.Unlock()
	return find(s.Programs, name)
}

func find(programs []Program, name string) *Program {
	i := slices.IndexFunc(programs, func(p Program) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	p := programs[i]
	return &p
}

// without returns programs without that of a name.
func without(programs []Program, name string) []Program {
	return slices.DeleteFunc(slices.Clone(programs), func(p Program) bool { return p.Name == name })
}

// same reports whether two programs are the same, or both the release's.
func same(a, b *Program) bool {
	return a == nil && b == nil || a != nil && b != nil && a.SHA256 == b.SHA256
}

// withoutName returns names without one of them.
func withoutName(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })
}

// stored returns the path of a program's copy.
func (s *State) stored(p Program) string { return s.path("programs", p.SHA256[:12], p.Name) }

// fileOf returns the path, on this machine, of a program, or of the release's with that name if it is nil.
func (s *State) fileOf(name string, p *Program) (string, error) {
	if p != nil {
		return s.stored(*p), nil
	}
	b, err := s.server()
	if err != nil {
		return "", err
	}
	return b.File(name)
}

// A NoProgramError is a program that a folder lacks.
type NoProgramError struct{ Name, Dir string }

func (e NoProgramError) Error() string { return fmt.Sprintf("there is no %s in %s", e.Name, e.Dir) }

// versionArguments make programs of Kubernetes print their version. Programs of other projects have various ways, or none.
var versionArguments = map[string][]string{
	apiServer: {"--version"}, "kube-controller-manager": {"--version"}, "kube-scheduler": {"--version"}, "kube-proxy": {"--version"},
	"kubelet":                  {"--version"},
	"cloud-controller-manager": {"--version"}, "kubectl": {"version", "--client"}, "kubeadm": {"version", "--output=short"},
}

// versionOf returns the version of a program, or an error if the program is for another platform.
func versionOf(ctx context.Context, name, file string) (string, error) {
	if ask, ok := versionArguments[name]; ok {
		text, err := machine.Output(ctx, "", append([]string{file}, ask...)...)
		if err != nil {
			return "", fmt.Errorf("it cannot say its version: %w", err)
		}
		first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
		return first, nil
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return "unknown", nil // a script, for one
	}
	on := map[string]string{}
	for _, s := range info.Settings {
		on[s.Key] = s.Value
	}
	if on["GOOS"] != "" && (on["GOOS"] != runtime.GOOS || on["GOARCH"] != runtime.GOARCH) {
		return "", fmt.Errorf("it is for %s/%s", on["GOOS"], on["GOARCH"])
	}
	of := info.Main
	for _, m := range info.Deps {
		if strings.HasPrefix(info.Path+"/", m.Path+"/") && (len(m.Path) > len(of.Path) || !strings.HasPrefix(info.Path+"/", of.Path+"/")) {
			of = *m
		}
	}
	return of.Version, nil
}

// store copies a program from a folder into that of the cluster, unless it is for another platform.
func (s *State) store(ctx context.Context, dir, name string) (Program, error) {
	from, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return Program{}, err
	}
	if _, err := os.Stat(from); errors.Is(err, os.ErrNotExist) {
		return Program{}, NoProgramError{name, dir}
	}
	if err := os.MkdirAll(s.path("programs"), 0o755); err != nil {
		return Program{}, err
	}
	tmp, err := os.MkdirTemp(s.path("programs"), ".new.*")
	if err != nil {
		return Program{}, err
	}
	defer os.RemoveAll(tmp)
	to, sum := filepath.Join(tmp, name), ""
	err = child.WithoutStarts(func() error { // since it is run at once
		out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		sum, err = copySum(out, from)
		return errors.Join(err, out.Close())
	})
	if err := errors.Join(err, os.Chmod(tmp, 0o755)); err != nil {
		return Program{}, fmt.Errorf("copy %s: %w", from, err)
	}
	p := Program{Name: name, SHA256: sum, From: from, Since: time.Now().Round(time.Second)}
	if p.Version, err = versionOf(ctx, name, to); err != nil {
		return Program{}, fmt.Errorf("%s: %w", from, err)
	}
	kept := filepath.Dir(s.stored(p))
	if exists(kept) {
		return p, nil // the same program is already stored
	}
	return p, os.Rename(tmp, kept)
}

// copySum copies a file, and returns its SHA-256.
func copySum(to io.Writer, file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, sum), f)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// sweepPrograms removes the copies of programs that the cluster no longer runs, and could not go back to.
func (s *State) sweepPrograms() error {
	entries, err := os.ReadDir(s.path("programs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was ever replaced
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		used := slices.ContainsFunc(slices.Concat(s.Programs, s.Replaced), func(p Program) bool { return e.Name() == p.SHA256[:12] })
		if !used {
			err = errors.Join(err, os.RemoveAll(s.path("programs", e.Name())))
		}
	}
	return err
}

// ownPrograms is a folder in that of a node, which comes before the release's in the node's PATH.
const (
	ownPrograms       = "bin"
	ownProgramsInNode = kubeadm.Folder + "/" + ownPrograms
)

// placeProgram has the init of a node start a program, or that of the release if it is nil, from now on.
func (s *State) placeProgram(n node, name string, p *Program) error {
	to := s.NodeFile(n.name, ownPrograms, name)
	if p == nil {
		if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return replaceBy(to, func(next string) error { return os.Link(s.stored(*p), next) })
}

// placePrograms links the programs of a node that do not come from the release.
func (s *State) placePrograms(n node) error {
	var err error
	for _, p := range s.Programs {
		if slices.Contains(nodePrograms, p.Name) {
			err = errors.Join(err, s.placeProgram(n, p.Name, &p))
		}
	}
	return err
}
