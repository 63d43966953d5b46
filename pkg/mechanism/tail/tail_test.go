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
	if !strings.HasPrefix(got, "it failed; its last lines:\n  line 6\n") || !strings.HasSuffix(got, "\n  E: http://***@example.com/debian is not there") {
		t.Errorf("it says %s", got)
	}
	if len(lines) != 21 || lines[0] != "line 0" {
		t.Errorf("lines are %q", lines)
	}
}
