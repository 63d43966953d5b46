package maintaining

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Every service runs the same commands, in the same order. Prow has no order between jobs, so it has no jobs for single platforms.
func TestServicesRunTheSameSteps(t *testing.T) {
	t.Parallel()
	for service := range maps.Keys(services) {
		files, err := pipelineFiles(service, []string{"linux/amd64", "darwin/arm64"})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, f := range files {
			var text any
			if err := yaml.Unmarshal(f.Data, &text); err != nil {
				t.Errorf("%s: %v", f.Name, err)
			}
			for _, commands := range scripts(text) {
				got[commands] = true
			}
			if strings.Contains(string(f.Data), "uses:") || strings.Contains(string(f.Data), "<no value>") {
				t.Errorf("%s has an action, or a gap:\n%s", f.Name, f.Data)
			}
		}
		for _, p := range pipelines {
			for _, j := range p.Jobs {
				var want string
				for _, s := range j.Steps {
					want += s.Run + "\n"
				}
				if got[want] == (service == "prow" && j.PerPlatform) {
					t.Errorf("%s: job %s of %s: has its steps: %v", service, j.Name, p.Name, got[want])
				}
			}
		}
	}
}

// scripts returns the commands of all jobs below a value of YAML.
func scripts(v any) (all []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if list, ok := v[key].([]any); ok && slices.Contains([]string{"steps", "script", "args"}, key) {
				var b strings.Builder
				for _, s := range list {
					if m, ok := s.(map[string]any); ok {
						s = m["run"]
					}
					for line := range strings.Lines(s.(string)) {
						if line = strings.TrimSuffix(line, "\n"); line != "set -e" && line[0] != '#' && !strings.HasPrefix(line, "export REPOSITORY=") {
							b.WriteString(line + "\n")
						}
					}
				}
				all = append(all, b.String())
				continue
			}
			all = append(all, scripts(v[key])...)
		}
	case []any:
		for _, e := range v {
			all = append(all, scripts(e)...)
		}
	}
	return all
}
