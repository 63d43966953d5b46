package session

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/roads"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/mechanism/variable"
)

// The variables that are on or off. Their values are those that Kubernetes' scripts compare them with.
var (
	FastBuild    = variable.Switch{Name: "KUBE_FASTBUILD", On: "true", Off: "false"}
	Packages     = variable.Switch{Name: "SLIPWAY_PACKAGES", On: "true", Off: "false"}
	CacheUpload  = variable.Switch{Name: "SLIPWAY_CACHE_UPLOAD", On: "true", Off: "false"}
	Cover        = variable.Switch{Name: "KUBE_COVER", On: "y", Off: "n"}
	PruneReports = variable.Switch{Name: "KUBE_PRUNE_JUNIT_TESTS", On: "true", Off: "false", Default: true}

	// ReleaseRunsTests says whether make release runs the unit tests first.
	ReleaseRunsTests = variable.Switch{Name: "KUBE_RELEASE_RUN_TESTS", On: "y", Off: "n", Default: true}
)

// IsOn returns a switch for the default of a flag. CheckVariables reports a value that means nothing before any command runs.
func (o *Session) IsOn(s variable.Switch) bool {
	on, _ := s.Read(o.Getenv)
	return on
}

// CheckVariables returns an error about all variables with a value that means nothing, so that none of them is ignored silently. What
// depends on the tree is checked when it is read: components, platforms, versions, the shared cache.
func CheckVariables(getenv func(string) string) error {
	var errs []error
	check := func(_ any, err error) { errs = append(errs, err) }
	for _, s := range []variable.Switch{
		FastBuild, Packages, CacheUpload, Cover, PruneReports, ReleaseRunsTests,
		{Name: "KUBE_CACHE_MUTATION_DETECTOR", On: "true", Off: "false"}, {Name: "KUBE_PANIC_WATCH_DECODE_ERROR", On: "true", Off: "false"},
	} {
		check(s.Read(getenv))
	}
	for _, name := range []string{"ETCD_PORT", "SECURE_API_PORT"} {
		check(variable.Number(getenv, name, 1, math.MaxUint16))
	}
	check(project.SettingsFrom(getenv))
	check(memory(getenv))
	check(Verbosity(getenv))
	check(variable.OneOf(getenv, "KUBE_COVERMODE", "set", "count", "atomic"))
	check(nil, CheckRoad(getenv("ROAD")))
	check(TestFlags(getenv))
	if value := getenv("GOGC"); value != "" && value != "off" {
		if _, err := strconv.ParseInt(value, 10, 32); err != nil {
			errs = append(errs, variable.Bad("GOGC", value, "a number of percent, or off"))
		}
	}
	return errors.Join(errs...)
}

func Verbosity(getenv func(string) string) (int, error) {
	return variable.Number(getenv, "KUBE_VERBOSE", 0, math.MaxInt)
}

// CheckRoad checks the road that a flag or a variable names.
func CheckRoad(name string) error {
	if name != "" && !slices.Contains(roads.Names(), name) {
		return suggest.Unknown("road", name, roads.Names())
	}
	return nil
}

// TestFlags returns the flags of go test that KUBE_RACE and KUBE_TIMEOUT name.
func TestFlags(getenv func(string) string) ([]string, error) {
	race, err := variable.OneOf(getenv, "KUBE_RACE", "-race")
	timeout, other := TestTimeout(getenv("KUBE_TIMEOUT"))
	if err := errors.Join(err, other); err != nil {
		return nil, err
	}
	return slices.DeleteFunc([]string{race, timeout}, func(flag string) bool { return flag == "" }), nil
}

// TestTimeout returns the flag of go test for a timeout, which may be a flag already, or "" for none.
func TestTimeout(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	text := strings.TrimPrefix(strings.TrimLeft(value, "-"), "timeout=")
	if _, err := time.ParseDuration(text); err != nil {
		return "", badrequest.Mark(fmt.Errorf("KUBE_TIMEOUT or --timeout: %w: write 10m, or -timeout=10m", err))
	}
	return "-timeout=" + text, nil
}

// unread lists variables that Kubernetes' make and its scripts read, and slipway does not. docs/make.md says what to use instead. Names
// that other programs use as well, such as OUT_DIR, are left out.
var unread = []string{
	"KUBE_OUTPUT_SUBPATH", "KUBE_EXTRA_WHAT",
	"KUBE_GOFLAGS", "KUBE_CGO_OVERRIDES", "KUBE_STATIC_OVERRIDES", "KUBE_BUILD_WITH_COVERAGE", "KUBE_PARALLEL_BUILD_MEMORY",
	"KUBE_GOPATH", "FORCE_HOST_GO",
	"KUBE_BUILD_CONFORMANCE", "KUBE_BASE_IMAGE_REGISTRY", "KUBE_GORUNNER_IMAGE", "KUBE_BUILD_SETCAP_IMAGE", "KUBE_BUILD_PULL_LATEST_IMAGES",
	"KUBE_APISERVER_BASE_IMAGE", "KUBE_CONTROLLER_MANAGER_BASE_IMAGE", "KUBE_SCHEDULER_BASE_IMAGE", "KUBE_PROXY_BASE_IMAGE",
	"KUBECTL_BASE_IMAGE", "KUBE_CROSS_IMAGE", "KUBE_CROSS_VERSION",
	"KUBE_INTEGRATION_TEST_MAX_CONCURRENCY", "KUBE_TEST_VMODULE", "KUBE_KEEP_VERBOSE_TEST_OUTPUT",
	"KUBE_PROXY_MODE", "KUBE_CONTROLLERS", "KUBE_ENABLE_CLUSTER_DNS", "KUBE_ENABLE_NODELOCAL_DNS", "KUBE_DEFAULT_STORAGE_CLASS",
	"ENABLE_ADMISSION_PLUGINS", "DISABLE_ADMISSION_PLUGINS", "ADMISSION_CONTROL_CONFIG_FILE", "AUDIT_POLICY_FILE", "AUTHORIZATION_MODE",
	"AUTHORIZATION_CONFIG", "EMULATED_VERSION", "KUBELET_FLAGS", "EVICTION_HARD", "EVICTION_SOFT", "CPUMANAGER_POLICY",
	"MEMORY_MANAGER_POLICY", "TOPOLOGY_MANAGER_POLICY",
}

var saidUnread sync.Once

// SayUnread says, once in a process, which variables of Kubernetes have no effect.
func SayUnread(getenv func(string) string, w io.Writer) {
	set := slices.DeleteFunc(slices.Clone(unread), func(name string) bool { return getenv(name) == "" })
	if len(set) > 0 {
		saidUnread.Do(func() {
			fmt.Fprintf(w, "slipway: %s: without effect here, see docs/make.md for what is read instead\n", strings.Join(set, ", "))
		})
	}
}

// SayIgnored says, once, which settings of Go have no effect.
func (o *Session) SayIgnored() {
	ignored := toolchain.Ignored(o.Getenv)
	if len(ignored) == 0 || o.saidIgnored {
		return
	}
	o.saidIgnored = true
	text := strings.Join(ignored, ", ") + ": ignored, since a release is the same whatever the user's settings of Go are"
	if slices.ContainsFunc(ignored, func(setting string) bool {
		return strings.HasPrefix(setting, "GOOS=") || strings.HasPrefix(setting, "GOARCH=")
	}) {
		text += "; KUBE_BUILD_PLATFORMS or --platform names platforms"
	}
	o.Say(text)
}
