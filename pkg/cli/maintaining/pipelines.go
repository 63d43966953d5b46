package maintaining

import (
	"bytes"
	"embed"
	"maps"
	"slices"
	"strings"
	"text/template"

	"slipway.build/pkg/maintain/kit"
	"slipway.build/pkg/mechanism/suggest"
)

// A pipeline is what a service does at some occasion. All services do the same: their files are written from one list.
type pipeline struct {
	Name, Title string
	Jobs        []job
}

// A job runs its steps in an empty folder, one after another, until one fails.
type job struct {
	Name, After string // the job that must have succeeded
	PerPlatform bool   // it runs once for each, in KUBE_BUILD_PLATFORMS
	Stores      bool   // results in the shared cache
	Signs       bool
	Pushes      bool // a branch
	Steps       []step
}

// A step is commands for a shell that ends at the first that fails.
type step struct {
	Name, Run string
	Remote    bool // asks the repository
}

var (
	checkout = []step{
		{"check out", `git init --quiet .
git remote add origin "$REPOSITORY"
git fetch --quiet --tags origin "$COMMIT"
git checkout --quiet FETCH_HEAD`, true},
		{"compile slipway", "make slipway", false},
	}
	check = append(slices.Clone(checkout), []step{
		{"patches apply", "_output/bin/slipway patch list", false},
		{"test what they touch", "make test", false},
		{"make a release", "make quick-release", false},
		{"verify it", "_output/bin/slipway verify", false},
		{"boot its control plane", "_output/bin/slipway cluster up --control-plane-only", false},
		{"check it", "_output/bin/slipway cluster verify", false},
		{"remove it", "_output/bin/slipway cluster down", false},
	}...)
	pipelines = []pipeline{
		{"pull-request", "Pull request", []job{{Name: "check", Steps: check}}},
		{"main", "Main", []job{{Name: "check", Stores: true, Steps: check}}},
		{"tag", "Tag", []job{
			{Name: "platform", PerPlatform: true, Stores: true, Steps: append(slices.Clone(checkout),
				step{"make its part of the release", "_output/bin/slipway release --inputs=false", false})},
			{Name: "release", After: "platform", Signs: true, Steps: append(slices.Clone(checkout),
				step{"put the release together", "_output/bin/slipway release", false},
				step{"sign it", "_output/bin/slipway sign --from-cache --key env://RELEASE_KEY", false},
				step{"verify it", "_output/bin/slipway verify --key env://RELEASE_PUB", false})},
		}},
		{"weekly", "Weekly", []job{
			{Name: "bump", Pushes: true, Steps: append(slices.Clone(checkout),
				step{"list what is behind", "_output/bin/slipway outdated", false},
				step{"make a branch", `git switch --quiet --create slipway-bump
_output/bin/slipway bump
git add --all
git diff --cached --quiet || git -c user.name=slipway -c user.email=slipway@localhost commit --quiet --message "slipway bump"
git push --quiet --force origin slipway-bump`, true})},
			{Name: "vulns", Steps: append(slices.Clone(checkout),
				step{"make a release", "make quick-release", false},
				step{"look for vulnerabilities", `_output/bin/slipway vulns --db "${VULNDB:-https://vuln.go.dev}" --tracker off`, false})},
		}},
	}
)

// services has the files of each service, by the template that writes them. NAME is that of a pipeline.
var services = map[string]map[string]string{
	"github": {".github/workflows/NAME.yml": "github.tmpl"},
	"gitlab": {".gitlab-ci.yml": "gitlab.tmpl"},
	"prow":   {".prow.yaml": "prow.tmpl", "build/prow-weekly.yaml": "prow-weekly.tmpl"},
}

//go:embed pipelines/*.tmpl
var templates embed.FS

var forms = template.Must(template.New("").Funcs(template.FuncMap{
	"indent": indent,
	"script": func(by int, text string) string { // as a value of YAML
		if !strings.Contains(text, "\n") {
			return text
		}
		return indent(by, "|\nset -e\n"+text)
	},
}).ParseFS(templates, "pipelines/*.tmpl"))

// pipelineFiles returns the files with the pipelines of a service, for a distribution whose releases are for some platforms.
func pipelineFiles(service string, platforms []string) ([]kit.File, error) {
	of, ok := services[service]
	if !ok {
		return nil, suggest.Unknown("service for pipelines", service, slices.Sorted(maps.Keys(services)))
	}
	var files []kit.File
	for _, file := range slices.Sorted(maps.Keys(of)) {
		for _, p := range pipelines {
			var b bytes.Buffer
			data := map[string]any{"Platforms": platforms, "Pipeline": p, "All": pipelines}
			if err := forms.ExecuteTemplate(&b, of[file], data); err != nil {
				return nil, err
			}
			files = append(files, kit.File{Name: strings.ReplaceAll(file, "NAME", p.Name), Data: b.Bytes()})
			if !strings.Contains(file, "NAME") {
				break
			}
		}
	}
	return files, nil
}

func indent(by int, text string) string {
	return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", by))
}
