//go:build integration

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const secret = "hunter2-0f5b"

// secretEnv returns variables that hold secrets, and a home folder whose name is one.
func secretEnv() []string {
	home := filepath.Join(workspace, "home-"+secret)
	_ = os.MkdirAll(home, 0o700)
	env := []string{
		"HOME=" + home, "GITHUB_TOKEN=" + secret, "AWS_SECRET_ACCESS_KEY=" + secret, "GOAUTH=git " + secret, "RSYNC_PASSWORD=" + secret,
		"DOCKER_CONFIG=" + home, "SSH_AUTH_SOCK=/tmp/" + secret, "NETRC=" + secret, "SLIPWAY_TOKEN=" + secret, "KUBE_TOKEN=" + secret,
	}
	// Go downloads and compiles here with this machine's settings. The proxy whose URL holds a secret comes last.
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY"} {
		out, _ := command(workspace, nil, "go", "env", name).Output()
		value := strings.TrimSpace(string(out))
		if name == "GOPROXY" {
			value += ",https://user:" + secret + "@proxy.invalid"
		}
		env = append(env, name+"="+value)
	}
	return env
}

// Secrets in the user's environment are not in the image or its history, not in containers, and not in any output.
func TestContainersHoldNoSecrets(t *testing.T) {
	needEngine(t)
	image, err := buildImage()
	if err != nil {
		t.Fatal(err)
	}
	tr := smallTree(t)
	tr = tr.with(secretEnv()...)
	watched := tr.with()
	seen := map[string]string{
		"docker image history": tr.docker(t, "image", "history", "--no-trunc", image).ok(t).stdout,
		"docker image inspect": tr.docker(t, "image", "inspect", image).ok(t).stdout,
	}

	p := tr.start(t, slipway(t), "release", "--quick", "--road=container", "--json")
	roles := map[string]bool{}
	for over := false; !over; {
		select {
		case <-p.done:
			over = true
		case <-time.After(20 * time.Millisecond):
		}
		for _, c := range watched.containers(t) {
			key := "docker inspect " + c.Names
			if seen[key] != "" {
				continue
			}
			// It may be gone by now.
			if got := tr.docker(t, "inspect", c.Names); got.code == 0 {
				seen[key] = got.stdout
				roles[c.Role] = true
			}
			logs := tr.docker(t, "logs", c.Names)
			seen["docker logs "+c.Names] = logs.stdout + logs.stderr
		}
	}
	got := p.wait(t).ok(t)
	seen["slipway --json"] = got.stdout + got.stderr
	for _, role := range []string{"data", "rsync", "build"} {
		if !roles[role] {
			t.Errorf("the test did not see a %s container", role)
		}
	}
	tr.remove(t, "_output")
	got = tr.slipway(t, "release", "--quick", "--road=container", "-v", "1").ok(t)
	seen["slipway -v"] = got.stdout + got.stderr
	for name := range tr.inContainer(t, "cache") {
		if strings.Contains(name, secret) {
			t.Errorf("the cache has %s", name)
		}
	}
	since := time.Now()
	got = tr.slipway(t, "run", "--", "env").ok(t)
	seen["slipway run -- env"] = got.stdout + got.stderr
	seen["docker events"] = fmt.Sprint(tr.happened(t, since))

	password := regexp.MustCompile(`(?i)password|rsync_`)
	for what, text := range seen {
		if text == "" {
			t.Errorf("%s is empty", what)
		}
		if strings.Contains(text, secret) {
			t.Errorf("%s: shows a secret: %s", what, around(text, secret))
		}
		if strings.HasPrefix(what, "docker inspect") && password.MatchString(text) {
			t.Errorf("%s: mentions a password: %s", what, around(text, password.FindString(text)))
		}
	}
	documented := regexp.MustCompile(`^(GO[A-Z0-9]*|KUBE_GIT_[A-Z_]+|SOURCE_DATE_EPOCH|HOME|HOSTNAME|PATH|LANG|LC_ALL|TZ)=`)
	for line := range strings.Lines(got.stdout) {
		if !documented.MatchString(line) {
			t.Errorf("the environment has %s: %v", strings.TrimSpace(line), got)
		}
	}
}

// around returns the surroundings of the first match in a text.
func around(text, what string) string {
	i := strings.Index(text, what)
	if i < 0 {
		return ""
	}
	return text[max(0, i-100):min(len(text), i+100)]
}

// A container has access to no more of the machine than it needs.
func TestContainersAreConfined(t *testing.T) {
	needEngine(t)
	tr := smallTree(t)
	p := tr.start(t, slipway(t), "build", "kubectl", "--road=container")
	roles := map[string]string{}
	const format = `{{.HostConfig.NetworkMode}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.SecurityOpt}} ` +
		`{{.HostConfig.Privileged}} {{.Config.User}} {{len .HostConfig.Binds}} {{len .HostConfig.Devices}} {{len .HostConfig.PortBindings}} {{.HostConfig.PidMode}}{{.HostConfig.UsernsMode}}`
	for over := false; !over; {
		select {
		case <-p.done:
			over = true
		case <-time.After(20 * time.Millisecond):
		}
		for _, c := range tr.containers(t) {
			if roles[c.Role] != "" {
				continue
			}
			if got := tr.docker(t, "inspect", "--format", format, c.Names); got.code == 0 {
				roles[c.Role] = strings.TrimSpace(got.stdout)
			}
		}
	}
	p.wait(t).ok(t)
	for _, role := range []string{"rsync", "build", "data"} {
		if want := "none true [ALL] [no-new-privileges] false build 0 0 0"; roles[role] != want {
			t.Errorf("the %s container is\n  %s\nwant\n  %s", role, roles[role], want)
		}
	}
}
