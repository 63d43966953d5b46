package cli_test

import (
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
	"go.yaml.in/yaml/v3"
)

// pipeline is the script command `pipeline FILE JOB FOLDER [STEP...]`, which runs the steps of a job of a workflow in a new folder, but
// those named, as a machine of GitHub does.
func pipeline(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: pipeline FILE JOB FOLDER [STEP...]")
	}
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	var workflow struct {
		Jobs map[string]struct{ Steps []struct{ Name, Run string } }
	}
	ts.Check(yaml.Unmarshal(data, &workflow))
	steps := workflow.Jobs[args[1]].Steps
	if len(steps) == 0 {
		ts.Fatalf("%s has no job %s", args[0], args[1])
	}
	dir := ts.MkAbs(args[2])
	ts.Check(os.Mkdir(dir, 0o755))
	for name, file := range map[string]string{"CACHE_KEY": "ci.key", "RELEASE_KEY": "release.key", "RELEASE_PUB": "release.pub"} {
		if data, err := os.ReadFile(filepath.Join(ts.Getenv("WORK"), file)); err == nil {
			ts.Setenv(name, string(data)) // as the service's secrets
		}
	}
	skip := map[string]bool{}
	for _, name := range args[3:] {
		skip[name] = true
	}
	for _, s := range steps {
		if skip[s.Name] {
			delete(skip, s.Name)
			continue
		}
		ts.Logf("step %s", s.Name)
		ts.Check(ts.Exec("bash", "-e", "-c", "cd "+filepath.ToSlash(dir)+"\n"+s.Run))
	}
	if len(skip) > 0 {
		ts.Fatalf("%s: no steps %v", args[1], skip)
	}
}
