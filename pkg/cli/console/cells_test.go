package console

import (
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

func TestLinesFit(t *testing.T) {
	t.Parallel()
	l := line{{bold, "映像"}, {dim, " 12s"}, {normal, ""}, {cyan, "━━"}}
	for width := range 14 {
		got := l.fit(width)
		if got.cells() > width {
			t.Errorf("fit(%d) takes %d cells: %q", width, got.cells(), got.render(false))
		}
		if cut := width < l.cells(); width > 0 && cut != strings.HasSuffix(got.render(false), "…") {
			t.Errorf("fit(%d) = %q", width, got.render(false))
		}
	}
}

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
		size(0):                              "0 B",
		size(1023):                           "1023 B",
		size(1024):                           "1.0 KiB",
		size(1<<20 - 1):                      "1.0 MiB",
		size(327_578_231):                    "312.4 MiB",
		size(1<<63 - 1):                      "8.0 EiB",
		count(0):                             "0",
		count(999):                           "999",
		count(1204):                          "1,204",
		count(1234567):                       "1,234,567",
		count(-123456):                       "-123,456",
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
