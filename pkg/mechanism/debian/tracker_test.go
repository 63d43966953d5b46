package debian

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

func TestTrackerIsFetchedOnceAndAskedEachTime(t *testing.T) {
	t.Parallel()
	content, tag, status, sent := "one", `"1"`, http.StatusOK, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case status != http.StatusOK:
			w.WriteHeader(status)
		case tag != "" && r.Header.Get("If-None-Match") == tag:
			w.WriteHeader(http.StatusNotModified)
		default:
			sent++
			w.Header().Set("ETag", tag)
			w.Write([]byte(content))
		}
	}))
	t.Cleanup(server.Close)
	cache := t.TempDir()
	fetch := func(want string, times int) {
		t.Helper()
		file, err := FetchTracker(t.Context(), server.URL, cache)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want || sent != times {
			t.Errorf("%q, %v, want %q; it was sent %d times, want %d", got, err, want, sent, times)
		}
	}
	fetch("one", 1)
	fetch("one", 1)
	content, tag = "two", `"2"`
	fetch("two", 2)
	content, tag = "three", ""
	fetch("three", 3)
	fetch("three", 4) // without a tag, nothing says that it is the same
	status = http.StatusServiceUnavailable
	if file, err := FetchTracker(t.Context(), server.URL, cache); err == nil {
		t.Errorf("an old file is used that the server does not confirm: %s", file)
	}
	status = http.StatusNotModified // which nobody has asked for
	if file, err := FetchTracker(t.Context(), server.URL, cache); err == nil {
		t.Errorf("a file is used that has no tag: %s", file)
	}
}
