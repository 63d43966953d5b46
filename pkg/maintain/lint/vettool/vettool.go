// Package vettool has the analyzers of package lint. The slipway command links it. The program with the targets of make does not: analyzers
// make it start later, and most of what make does takes milliseconds.
//
// What must never be in here: which packages are analyzed, and what becomes of the problems.
package vettool

import (
	"crypto/sha256"
	_ "embed" // of this file
	"encoding/hex"
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/ashanbrown/forbidigo/v2/forbidigo"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/analysis/unitchecker"
	logcheck "sigs.k8s.io/logtools/logcheck/pkg"

	"slipway.build/pkg/maintain/lint"
)

// Main makes the process a tool of `go vet` if it was started as one. It does not return then.
func Main() {
	lint.HasTool = true
	if filepath.Base(os.Args[0]) != lint.ToolName {
		return
	}
	if slices.Contains(os.Args, "-V=full") {
		fmt.Printf("%s version devel buildID=%s\n", lint.ToolName, buildID())
		os.Exit(0)
	}
	log, _ := logcheck.Analyser()
	if config := beside(lint.Logs); config != "" {
		if err := log.Flags.Set("config", config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	unitchecker.Main(append(vet.Suite, log, forbidden())...)
}

// beside returns a file beside the tool, or "" if there is none.
func beside(name string) string {
	file := filepath.Join(filepath.Dir(os.Args[0]), name)
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

//go:embed vettool.go
var source []byte

// analyzing matches the modules that analyzers are made of.
var analyzing = regexp.MustCompile(`^(golang\.org/x/(tools|exp)|sigs\.k8s\.io/logtools|github\.com/ashanbrown/.*)$`)

// buildID identifies what decides on problems. The go command keeps results under it. By unitchecker's, of the whole program, they would be
// lost with every commit to slipway.
func buildID() string {
	sum := sha256.New()
	sum.Write(source)
	if info, ok := debug.ReadBuildInfo(); ok {
		fmt.Fprintln(sum, info.GoVersion)
		for _, m := range info.Deps {
			if analyzing.MatchString(m.Path) {
				fmt.Fprintln(sum, m.Path, m.Version, m.Sum, m.Replace)
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// forbidden returns an analyzer that forbids names, by a list of patterns beside the tool: in JSON, each in the form that forbidigo's own
// analyzer takes them by a flag. (It takes several such flags, of which go vet passes on one.) The flag -forbidigo.rules is for caches.
func forbidden() *analysis.Analyzer {
	a := &analysis.Analyzer{Name: lint.Names, Doc: "forbid names"}
	a.Flags.String("rules", "", "identifies the configuration")
	linter := sync.OnceValues(func() (*forbidigo.Linter, error) {
		var patterns []string
		data, err := os.ReadFile(beside(lint.Names))
		if err == nil {
			err = json.Unmarshal(data, &patterns)
		}
		if err != nil {
			return nil, err
		}
		return forbidigo.NewLinter(patterns, forbidigo.OptionAnalyzeTypes(true))
	})
	a.Run = func(pass *analysis.Pass) (any, error) {
		if beside(lint.Names) == "" { // the tree's own modules need no Kubernetes
			return nil, nil
		}
		l, err := linter()
		if err != nil {
			return nil, err
		}
		files := make([]ast.Node, len(pass.Files))
		for i, f := range pass.Files {
			files[i] = f
		}
		issues, err := l.RunWithConfig(forbidigo.RunConfig{Fset: pass.Fset, TypesInfo: pass.TypesInfo}, files...)
		for _, issue := range issues {
			pass.Report(analysis.Diagnostic{Pos: issue.Pos(), Message: issue.Details()})
		}
		return nil, err
	}
	return a
}
