package verify

import (
	"strings"
)

const jobManifest = `
apiVersion: batch/v1
kind: Job
metadata: {name: $name}
spec:
  completions: $completions
  parallelism: 2
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: $image, imagePullPolicy: IfNotPresent, args: [$args]}
`

// A Job completes once as many of its Pods have succeeded as it says, and fails when too many have failed.
func job(e *env) {
	e.apply(jobManifest, "name", "good", "completions", "3", "args", `exit, "0"`)
	e.apply(jobManifest, "name", "bad", "completions", "1", "args", `exit, "3"`)
	e.wait("condition=Complete", "job/good")
	e.is("job/good", "{.status.succeeded}", "3")
	e.wait("condition=Failed", "job/bad")
	e.is("job/bad", `{.status.conditions[?(@.type=="Failed")].reason}`, "BackoffLimitExceeded")
}

// A Job runs as many Pods at the same time as its parallelism, never more, and fewer when that is lowered.
func jobParallelism(e *env) {
	pods := e.watch("/api/v1", "pods")
	// None of its four Pods ends by itself, so as many run in the end as the Job allows.
	e.apply(jobManifest, "name", "long", "completions", "4", "args", "wait")
	e.wait("jsonpath={.status.ready}=2", "job/long")
	e.is("pods", `{.items[?(@.status.phase=="Running")].metadata.ownerReferences[0].name}`, "long long")
	e.kubectl("patch", "job/long", "--type=merge", `--patch={"spec": {"parallelism": 1}}`)
	e.wait("jsonpath={.status.active}=1", "job/long")
	// Four Pods that end at once, two at a time.
	e.apply(jobManifest, "name", "short", "completions", "4", "args", `exit, "0"`)
	e.wait("condition=Complete", "job/short")
	changes := pods.changes()
	for _, name := range []string{"long", "short"} {
		if got := mostUnfinished(changes, name); got != 2 {
			fail("job/%s had up to %d unfinished Pods at the same time, want 2", name, got)
		}
	}
}

// mostUnfinished returns how many Pods of a Job were unfinished at the same time.
func mostUnfinished(changes []change, job string) int {
	most := 0
	unfinished := map[string]bool{}
	for _, c := range changes {
		if c.Object.Metadata.Labels["job-name"] != job {
			continue
		}
		delete(unfinished, c.Object.Metadata.UID)
		if c.Type != "DELETED" && !c.Object.ended() {
			unfinished[c.Object.Metadata.UID] = true
		}
		most = max(most, len(unfinished))
	}
	return most
}

// A finished Job is deleted after its time to live, and is kept if it has none.
func ttlAfterFinished(e *env) {
	for name, ttl := range map[string]string{"brief": "ttlSecondsAfterFinished: 1", "kept": "suspend: false"} {
		e.apply(strings.Replace(jobManifest, "parallelism: 2", ttl, 1), "name", name, "completions", "1", "args", `exit, "0"`)
	}
	e.wait("condition=Complete", "job/kept")
	e.wait("delete", "job/brief")
	e.is("job/kept", "{.status.succeeded}", "1")
}

// A CronJob creates a Job at the next full minute.
func cronJob(e *env) {
	e.apply(`
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - {name: main, image: $image, imagePullPolicy: IfNotPresent, args: [exit, "0"]}
`)
	e.wait("jsonpath={.status.lastSuccessfulTime}", "cronjob/tick")
	if !strings.HasPrefix(e.get("jobs", "{.items[*].metadata.ownerReferences[*].name}"), "tick") {
		fail("the CronJob reports a Job that does not exist")
	}
}
