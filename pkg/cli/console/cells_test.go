package console

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestTruncateCutsByCells(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"kubelet", 7, "kubelet"},
		{"kubelet", 6, "kubel…"},
		{"kubelet", 1, "…"},
		{"kubelet", 0, ""},
		{"", 0, ""},
		{"映像映像", 8, "映像映像"},
		{"映像映像", 7, "映像映…"},
		{"映像映像", 6, "映像…"}, // a wide one does not fit into the one cell that is left
		{"映像映像", 2, "…"},
		{"e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"}, // the accent stays
		{"🚢🚢", 3, "🚢…"},
		{"Ünïcødé", 4, "Ünï…"},
	} {
		got := truncate(test.text, test.width)
		if got != test.want {
			t.Errorf("truncate(%q, %d) = %q, want %q", test.text, test.width, got, test.want)
		}
		if cells(got) > test.width {
			t.Errorf("truncate(%q, %d) takes %d cells", test.text, test.width, cells(got))
		}
	}
}

func TestColorsTakeNoCellsAndEndWhereTextIsCut(t *testing.T) {
	t.Parallel()
	on := palette(true)
	text, plain := on.paint(bold, "映像")+on.paint(dim, " 12s")+on.paint(cyan, "━━"), "映像 12s━━"
	if cells(text) != cells(plain) {
		t.Errorf("%q takes %d cells, want %d", text, cells(text), cells(plain))
	}
	for width := 1; width < 14; width++ {
		got := truncate(text, width)
		if stripped := colors.ReplaceAllString(got, ""); stripped != truncate(plain, width) {
			t.Errorf("truncate(%d) = %q, want the text %q", width, got, truncate(plain, width))
		}
		if !strings.HasSuffix(got, "\x1b[0m") {
			t.Errorf("truncate(%d) = %q, whose color does not end", width, got)
		}
	}
	if got := palette(false).paint(red, "x"); got != "x" {
		t.Errorf("without colors: %q", got)
	}
}

// colors matches what changes the color of text.
var colors = regexp.MustCompile(`\x1b\[[0-9;]*m`)

func TestOneLineCannotMoveTheCursor(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":             "plain",
		"a\nb\n":            "b",
		"10%\r20%":          "20%",
		"\x1b[2Jtab\tbed\a": "[2Jtabbed",
	} {
		if got := oneLine(in); got != want {
			t.Errorf("oneLine(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		duration(-time.Second):               "0ms",
		duration(80 * time.Millisecond):      "80ms",
		duration(999600 * time.Microsecond):  "1.0s",
		duration(12345 * time.Millisecond):   "12.3s",
		duration(59960 * time.Millisecond):   "1m00s",
		duration(252 * time.Second):          "4m12s",
		duration(3599600 * time.Millisecond): "1h00m",
		duration(100 * time.Hour):            "100h00m",
		clock(59960 * time.Millisecond):      "59s",
		clock(90 * time.Second):              "1m30s",
		Size(0):                              "0 B",
		Size(1023):                           "1023 B",
		Size(1024):                           "1.0 KiB",
		Size(1<<20 - 1):                      "1.0 MiB",
		Size(327_578_231):                    "312.4 MiB",
		Size(1<<63 - 1):                      "8.0 EiB",
		count(0):                             "0",
		count(999):                           "999",
		count(1204):                          "1,204",
		count(1234567):                       "1,234,567",
		tickText(90 * time.Second):           "1m30s",
		tickText(2 * time.Minute):            "2m",
		tickText(time.Hour):                  "1h",
		tickText(10 * time.Minute):           "10m",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
