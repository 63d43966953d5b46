// Pipelines reads the pipelines of a distribution as their services do: those for GitHub by actionlint, those for Prow by Prow's own code.
// It is in a module of its own, since Prow needs hundreds of modules that slipway does not.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rhysd/actionlint"
	"github.com/sirupsen/logrus"
	"sigs.k8s.io/prow/pkg/config"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pipelines FOLDER")
		os.Exit(2)
	}
	dir := os.Args[1]
	read := github
	if _, err := os.Stat(filepath.Join(dir, ".prow.yaml")); err == nil {
		read = prow
	}
	said, err := read(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pipelines:", err)
		os.Exit(1)
	}
	fmt.Println(said)
}

func github(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, ".github", "workflows", "*"))
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fmt.Errorf("%s has no workflows", dir)
	}
	l, err := actionlint.NewLinter(os.Stderr, &actionlint.LinterOptions{Shellcheck: "shellcheck"})
	if err != nil {
		return "", err
	}
	found, err := l.LintFiles(files, nil)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%d problems", len(found))
	}
	return fmt.Sprintf("%d workflows", len(files)), err
}

// service is the least that Prow wants of its own configuration to accept jobs that it decorates.
const service = `
plank:
  default_decoration_config_entries:
  - config:
      utility_images: {clonerefs: a, initupload: b, entrypoint: c, sidecar: d}
      gcs_configuration: {bucket: e, path_strategy: explicit}
      gcs_credentials_secret: f
in_repo_config:
  allowed_clusters: {"*": [default]}
`

func prow(dir string) (_ string, err error) {
	tmp, err := os.MkdirTemp("", "prow")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	own := filepath.Join(tmp, "config.yaml")
	if err := os.WriteFile(own, []byte(service), 0o644); err != nil {
		return "", err
	}
	c, err := config.LoadStrict(own, filepath.Join(dir, "build", "prow-weekly.yaml"), nil, "")
	if err != nil {
		return "", err
	}
	y, err := config.ReadProwYAML(logrus.NewEntry(logrus.StandardLogger()), dir, true)
	if err != nil {
		return "", err
	}
	if err := config.DefaultAndValidateProwYAML(c, y, "acme/kubernetes"); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d presubmits, %d postsubmits, %d periodic jobs", len(y.Presubmits), len(y.Postsubmits), len(c.Periodics)), nil
}
