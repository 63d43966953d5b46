package tail_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/tail"
)

func TestExplainAddsTheLastLines(t *testing.T) {
	t.Parallel()
	failed := errors.New("it failed")
	var lines []string
	l := &tail.Lines{Each: func(line string) { lines = append(lines, line) }}
	if got := l.Explain(failed); !errors.Is(got, failed) || got.Error() != "it failed" {
		t.Errorf("without output: %v", got)
	}
	for n := range 20 {
		_, _ = fmt.Fprintf(l, "line ")
		_, _ = fmt.Fprintf(l, "%d\r\n\n", n)
	}
	_, _ = l.Write([]byte("E: http://me:p%40ss@example.com/debian is not there"))
	got := l.Explain(failed).Error()
	if !strings.HasPrefix(got, "it failed; its last lines:\n  line 6\n") ||
		!strings.HasSuffix(got, "\n  E: http://***@example.com/debian is not there") {
		t.Errorf("it says %s", got)
	}
	if len(lines) != 21 || lines[0] != "line 0" {
		t.Errorf("lines are %q", lines)
	}
}

func TestPasswordsAreRedacted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"fetch http://me:p%40ss@example.com/debian":              "fetch http://***@example.com/debian",
		"fetch http://me:p@ss@example.com/debian":                "fetch http://***@example.com/debian",
		"fetch http://me:p@s@s@example.com":                      "fetch http://***@example.com",
		"fetch http://me:p?s#s@example.com/a@v1":                 "fetch http://***@example.com/a@v1",
		"GOPROXY=https://t@ken@a.example,https://me:x@b.example": "GOPROXY=https://***@a.example,https://***@b.example",
		"GOPROXY=https://t@a.example/go,https://me:x@@b.example": "GOPROXY=https://***@a.example/go,https://***@b.example",
		"http://example.com/golang.org/x/net@v0.1.0, k@example":  "http://example.com/golang.org/x/net@v0.1.0, k@example",
		"write to me@example.com":                                "write to me@example.com",
	} {
		if got := tail.Redact(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
