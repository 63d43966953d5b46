package verify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// An object has the fields of objects that checks read.
type object struct {
	Metadata struct {
		Name            string
		Labels          map[string]string
		UID             string
		ResourceVersion string
	}
	Spec struct {
		Replicas int
	}
	Status struct {
		Phase             string
		AvailableReplicas int
		Conditions        []condition
	}
}

type condition struct{ Type, Status string }

func (o object) ready() bool { return slices.Contains(o.Status.Conditions, condition{"Ready", "True"}) }

// ended reports whether a Pod has ended.
func (o object) ended() bool { return o.Status.Phase == "Succeeded" || o.Status.Phase == "Failed" }

// A change is an event of a watch.
type change struct {
	Type   string // ADDED, MODIFIED, DELETED, BOOKMARK or ERROR
	Object object
}

// A watcher reads the changes of a collection in the API since a resource version.
type watcher struct {
	e             *env
	path, version string
}

// watch returns a watcher for what happens from now on to a resource in the check's namespace.
func (e *env) watch(api, resource string) watcher {
	path := fmt.Sprintf("%s/namespaces/%s/%s", api, e.namespace, resource)
	return watcher{e, path, getJSON[object](e, path).Metadata.ResourceVersion}
}

// changes returns the changes until now.
func (w watcher) changes() []change { return w.read("timeoutSeconds=1") }

// read returns the changes that a watch with these parameters reports until it ends.
func (w watcher) read(parameters string) []change {
	var changes []change
	for d := json.NewDecoder(strings.NewReader(w.text(parameters))); d.More(); {
		var c change
		if err := d.Decode(&c); err != nil {
			fail("watch %s: %w", w.path, err)
		}
		if c.Type == "ERROR" {
			fail("watch %s: the API server reports an error", w.path)
		}
		changes = append(changes, c)
	}
	return changes
}

func (w watcher) text(parameters string) string {
	return w.e.kubectl("get", "--raw", w.path+"?watch=1&"+parameters+"&resourceVersion="+w.version)
}

// deleted returns the names of the objects that were deleted, in order.
func (w watcher) deleted() []string {
	var names []string
	for _, c := range w.changes() {
		if c.Type == "DELETED" {
			names = append(names, c.Object.Metadata.Name)
		}
	}
	return names
}

// inOrder waits until Pods have been created, have become ready and have been deleted in an order.
func (w watcher) inOrder(want ...string) {
	w.e.until(func() {
		if got := history(w.changes()); !slices.Equal(got, want) {
			fail("in order, there was %q, want %q", got, want)
		}
	})
}

// history lists in order which Pods were created, became ready and were deleted.
func history(changes []change) []string {
	var all []string
	ready := map[string]bool{} // by UID, of the Pods created since
	for _, c := range changes {
		name, uid := c.Object.Metadata.Name, c.Object.Metadata.UID
		switch {
		case c.Type == "ADDED":
			all, ready[uid] = append(all, name+" created"), false
		case c.Type == "DELETED":
			all = append(all, name+" deleted")
		case c.Object.ready():
			if was, created := ready[uid]; created && !was {
				all, ready[uid] = append(all, name+" ready"), true
			}
		}
	}
	return all
}
