package kubecross

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStreamIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	var got []string
	err := read(strings.NewReader(`{"stream":"Step 1/2 : FROM scratch"}`+"\r\n"+`{"stream":"\n"}{"status":"Pulling","id":"a"}{"aux":{"ID":"sha256:1"}}`),
		func(m message) { got = append(got, m.Stream+m.Status) })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Step 1/2 : FROM scratch", "\n", "Pulling", ""}, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestErrorsInAStream(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]string{
		`{"stream":"x"}{"errorDetail":{"code":1,"message":"returned a non-zero code: 1"},"error":"short"}{"stream":"y"}`: "returned a non-zero code: 1",
		`{"error":"no space left on device"}`:              "no space left on device",
		`{"error":"Get \"http://me:secret@example.com\""}`: `Get "http://***@example.com"`,
		`{"stream":"x`:             "unexpected EOF",
		"<html>Bad gateway</html>": "the engine's answer: ",
	} {
		if err := read(strings.NewReader(stream), func(message) {}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", stream, err, want)
		}
	}
}
