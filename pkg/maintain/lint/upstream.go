package lint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.build/pkg/maintain/kubetest"
	"slipway.build/pkg/mechanism/tail"
)

// rules are what hack/golangci.yaml in upstream's repository says of the linters that run here.
type rules struct {
	Linters struct {
		Exclusions struct {
			Rules []exclusion
		}
		Settings struct {
			Forbidigo struct {
				Forbid []struct{ Pattern, Pkg, Msg string }
			}
		}
	}
}

// An exclusion hides problems. Fields that are empty match everything.
type exclusion struct {
	Linters    []string
	Path       string
	PathExcept string `yaml:"path-except"`
	Text       string
}

// readRules reads upstream's rules.
func readRules(repository string) (r rules, err error) {
	data, err := os.ReadFile(filepath.Join(repository, "hack", "golangci.yaml"))
	if err == nil {
		err = yaml.Unmarshal(data, &r)
	}
	if err != nil {
		return r, fmt.Errorf("upstream's rules for golangci-lint: %w", err)
	}
	return r, nil
}

// hides reports whether an exclusion hides a problem in a file of the repository.
func (r rules) hides(p Problem, file string) bool {
	matches := func(pattern, text string) bool {
		re, err := regexp.Compile(pattern)
		return err == nil && re.MatchString(text)
	}
	return slices.ContainsFunc(r.Linters.Exclusions.Rules, func(x exclusion) bool {
		return (len(x.Linters) == 0 || slices.Contains(x.Linters, p.linter())) && matches(x.Text, p.Check+": "+p.Message) &&
			matches(x.Path, file) && (x.PathExcept == "" || !matches(x.PathExcept, file))
	})
}

// write writes upstream's configuration of analyzers to a folder, and returns a flag that identifies it: the go command keeps results by
// flags, which must be the same in every tree.
func (r rules) write(repository, dir string) (flag string, err error) {
	log, err := os.ReadFile(filepath.Join(repository, "hack", "logcheck.conf"))
	if err != nil {
		return "", err
	}
	patterns := []string{}
	for _, f := range r.Linters.Settings.Forbidigo.Forbid {
		text, err := json.Marshal(map[string]string{"p": f.Pattern, "pkg": f.Pkg, "msg": f.Msg}) // forbidigo's own names
		if err != nil {
			return "", err
		}
		patterns = append(patterns, string(text))
	}
	list, err := json.Marshal(patterns)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for name, config := range map[string][]byte{Names: list, Logs: log} {
		if err := os.WriteFile(filepath.Join(dir, name), config, 0o666); err != nil {
			return "", err
		}
	}
	sum.Write(list)
	sum.Write(log)
	return "-" + Names + ".rules=" + hex.EncodeToString(sum.Sum(nil)), nil
}

// A program of upstream checks its repository.
type program struct {
	check    string
	folder   string // of its source, in the repository
	args     []string
	problems *regexp.Regexp // finds what it prints of each problem
}

// programs are upstream's, as hack/verify-import-boss.sh and hack/verify-featuregates.sh run them.
var programs = []program{
	{"import-boss", "./cmd/import-boss", nil, regexp.MustCompile(`(?m)^ERROR: (.*)$`)},
	{"feature-gates", "./test/compatibility_lifecycle", []string{"feature-gates", "verify"},
		regexp.MustCompile(`(?s)Failed to verify (.*?)(?:exit status \d+\s*)?$`)},
}

// complaint matches an error in klog's format. import-boss logs that it could not load packages, and then ends as if it had found nothing.
var complaint = regexp.MustCompile(`(?m)^[EF]\d{4} .+$`)

// runPrograms runs upstream's programs about packages of Kubernetes.
func runPrograms(ctx context.Context, s *kubetest.Sources, packages []string) ([]Problem, error) {
	var problems []Problem
	for _, p := range programs {
		args := append([]string{"run", "-buildvcs=false", "-trimpath", "-tags=" + strings.Join(s.Tags, ","), p.folder}, p.args...)
		if p.args == nil {
			args = append(args, packages...)
		}
		cmd := s.Go.Command(ctx, s.Repository, "", "", args...)
		cmd.Env = append(cmd.Env, "GOWORK="+filepath.Join(s.Repository, "go.work"))
		out, err := cmd.CombinedOutput()
		found := p.problems.FindAllStringSubmatch(string(out), -1)
		if line := complaint.Find(out); line != nil {
			err = fmt.Errorf("%s", line)
			found = nil
		}
		if _, exited := errors.AsType[*exec.ExitError](err); err != nil && (!exited || len(found) == 0) {
			var last tail.Lines
			last.Write(out)
			return nil, last.Explain(fmt.Errorf("upstream's %s: %w", strings.TrimPrefix(p.folder, "./"), err))
		}
		for _, text := range found {
			message := strings.ReplaceAll(strings.TrimSpace(text[1]), s.Repository+string(filepath.Separator), "")
			problems = append(problems, Problem{Check: p.check, Message: message})
		}
	}
	return problems, nil
}
