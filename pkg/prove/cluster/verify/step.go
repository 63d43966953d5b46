package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// A failure is the error of a step. A step that fails ends its check as FailNow ends a test: it panics with a failure, and attempt recovers
// it. So a check reads as a list of steps. Steps must run in the goroutine of their check.
type failure struct{ error }

// fail ends the check with an error.
func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// noError ends the check with an error, unless that is nil.
func noError(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns a value, or ends the check with an error.
func must[T any](value T, err error) T {
	noError(err)
	return value
}

// attempt runs steps until one fails, and returns its error.
func attempt(steps func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = p.error
		default:
			panic(p)
		}
	}()
	steps()
	return nil
}

// during runs steps. If one fails, its error begins with words that say when or where.
func during(words string, steps func()) {
	if err := attempt(steps); err != nil {
		fail("%s: %w", words, err)
	}
}

// refused requires that a step fails with an error that contains words. If it succeeds, the message has the output that it returns.
func refused(words string, step func() string) {
	var out string
	err := attempt(func() { out = step() })
	if err == nil {
		fail("not refused, want an error with %q: %s", words, strings.TrimSpace(out))
	}
	if !strings.Contains(err.Error(), words) {
		fail("refused, but not with %q: %w", words, err)
	}
}

// until repeats steps until they succeed or the check's time is over. It pauses for longer than the steps take: each call of kubectl takes
// a tenth of a second of a processor or more, and what this check and others wait for needs the processors, too.
func (e *env) until(steps func()) {
	var last error
	for {
		start := time.Now()
		err := attempt(steps)
		if err == nil {
			return
		}
		if e.ctx.Err() == nil || last == nil {
			last = err // not the error of a call that was cut off
		}
		select {
		case <-e.ctx.Done():
			fail("%w: %w", context.Cause(e.ctx), last)
		case <-time.After(max(500*time.Millisecond, min(3*time.Since(start), 4*time.Second))):
		}
	}
}

// kubectl runs the release's kubectl as administrator in the check's namespace, and returns its output.
func (e *env) kubectl(args ...string) string { return e.feed("", args...) }

// feed is kubectl with standard input.
func (e *env) feed(stdin string, args ...string) string {
	return must(e.runKubectl(e.ctx, e.Kubeconfig(), stdin, args...))
}

// refused requires that kubectl fails with an error that contains words.
func (e *env) refused(words string, args ...string) {
	refused(words, func() string { return e.kubectl(args...) })
}

// apply applies a manifest after expanding $image, $namespace and the names in pairs.
func (e *env) apply(manifest string, pairs ...string) {
	e.feed(e.expand(manifest, pairs...), "apply", "-f", "-")
}

func (e *env) expand(manifest string, pairs ...string) string {
	pairs = append(pairs, "image", e.image, "namespace", e.namespace)
	return os.Expand(manifest, func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return "$" + name
	})
}

// get returns what a JSONPath finds.
func (e *env) get(what, path string, flags ...string) string {
	return strings.TrimSpace(e.kubectl(append([]string{"get", what, "-o", "jsonpath=" + path}, flags...)...))
}

// is requires that a JSONPath finds a value.
func (e *env) is(what, path, want string) {
	if got := e.get(what, path); got != want {
		fail("%s of %s is %q, want %q", path, what, got, want)
	}
}

// becomes waits until a JSONPath finds a value.
func (e *env) becomes(what, path, want string) { e.until(func() { e.is(what, path, want) }) }

// wait runs kubectl wait for as long as the check may take.
func (e *env) wait(condition string, what ...string) {
	e.kubectl(append([]string{"wait", "--for=" + condition, e.patience()}, what...)...)
}

// ready waits until Pods are ready.
func (e *env) ready(pods ...string) { e.wait("condition=Ready", prefixed("pod/", pods)...) }

// rolledOut waits until a workload is rolled out.
func (e *env) rolledOut(what string, flags ...string) {
	e.kubectl(append([]string{"rollout", "status", what, e.patience()}, flags...)...)
}

// patience returns a timeout for kubectl that ends before the check does, so that kubectl can say what it has waited for.
func (e *env) patience() string {
	limit := defaultLimit
	if end, ok := e.ctx.Deadline(); ok {
		limit = max(time.Until(end)-time.Second, time.Second)
	}
	return fmt.Sprintf("--timeout=%ds", int(limit.Seconds()))
}

func prefixed(prefix string, names []string) []string {
	var all []string
	for _, name := range names {
		all = append(all, prefix+name)
	}
	return all
}

// exec runs the probe in a Pod, and returns its output without the white space around it.
func (e *env) exec(pod string, args ...string) string {
	return strings.TrimSpace(e.kubectl(append([]string{"exec", pod, "--", "/probe"}, args...)...))
}

// getJSON decodes what the API server answers at a path.
func getJSON[T any](e *env, path string) (value T) {
	noError(json.Unmarshal([]byte(e.kubectl("get", "--raw", path)), &value))
	return value
}

// httpGet gets a URL from this machine, without the proxy that its environment may name.
func (e *env) httpGet(url string) string {
	return e.httpGetBy(&http.Transport{DisableKeepAlives: true}, url, "")
}

// httpGetBy returns what is answered with status 200, without the white space around it. It sends a token, unless that is empty.
func (e *env) httpGetBy(transport http.RoundTripper, url, token string) string {
	r := must(http.NewRequestWithContext(e.ctx, http.MethodGet, url, nil))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer := must((&http.Client{Timeout: 5 * time.Second, Transport: transport}).Do(r))
	defer answer.Body.Close()
	body := must(io.ReadAll(answer.Body))
	if answer.StatusCode != http.StatusOK {
		fail("%s answers %s: %s", url, answer.Status, body)
	}
	return strings.TrimSpace(string(body))
}
