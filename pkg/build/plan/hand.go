package plan

import "slipway.build/pkg/tree/stamp"

// HandedOn returns the environment with which slipway or make, run elsewhere on the same sources, makes the same as here: the
// user's Kubernetes variables, and the tree's version, which would otherwise be read from git.
func (p *Project) HandedOn(getenv func(string) string) []string {
	var env []string
	for _, name := range []string{
		"WHAT", "DBG", "GOFLAGS", "GOLDFLAGS", "KUBE_BUILD_PLATFORMS", "KUBE_FASTBUILD", "KUBE_RELEASE_RUN_TESTS", "KUBE_RACE",
		"KUBE_TIMEOUT", "KUBE_VERBOSE", "KUBE_DOCKER_REGISTRY", "KUBE_DOCKER_IMAGE_TAG",
	} {
		if value := getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return append(env, stamp.Environ(p.Stamp)...)
}
