package lint

import (
	"bytes"
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

// These are upstream's, as hack/verify-import-boss.sh and hack/verify-featuregates.sh run them.
var (
	importBoss   = program{"import-boss", "./cmd/import-boss", nil, regexp.MustCompile(`(?m)^ERROR: (.*)$`)}
	featureGates = program{"feature-gates", "./test/compatibility_lifecycle", []string{"feature-gates", "verify"},
		regexp.MustCompile(`(?s)Failed to verify (.*?)(?:exit status \d+\s*)?$`)}
)

// defineGates reports whether a file, as it was or as patches make it, may define feature gates, or is part of what upstream compares them
// with. Upstream's program looks at files that import the package alone.
func defineGates(name string, versions ...[]byte) bool {
	return strings.HasPrefix(name, strings.TrimPrefix(featureGates.folder, "./")+"/") ||
		slices.ContainsFunc(versions, func(data []byte) bool { return bytes.Contains(data, []byte(`"k8s.io/component-base/featuregate"`)) })
}

// complaint matches an error in klog's format. import-boss logs that it could not load packages, and then ends as if it had found nothing.
var complaint = regexp.MustCompile(`(?m)^[EF]\d{4} .+$`)

// runPrograms runs upstream's programs about what patches change.
func (l *linter) runPrograms(ctx context.Context) ([]Problem, error) {
	var programs []program
	boss := importBoss
	boss.args = slices.DeleteFunc(slices.Clone(l.touched), func(pkg string) bool { return !slices.Contains(l.found, pkg) })
	if l.imports && len(boss.args) > 0 { // otherwise, the imports are those that upstream was released with
		programs = append(programs, boss)
	}
	if l.gates {
		programs = append(programs, featureGates)
	}
	var problems []Problem
	for _, p := range programs {
		args := append([]string{"run", "-buildvcs=false", "-trimpath", "-tags=" + strings.Join(l.Tags, ","), p.folder}, p.args...)
		cmd := l.Go.Command(ctx, l.Repository, "", "", args...)
		cmd.Env = append(cmd.Env, "GOWORK="+filepath.Join(l.Repository, "go.work"))
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
			message := strings.ReplaceAll(strings.TrimSpace(text[1]), l.Repository+string(filepath.Separator), "")
			problems = append(problems, Problem{Check: p.check, Message: message})
		}
	}
	return problems, nil
}
