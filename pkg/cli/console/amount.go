package console

import (
	"fmt"
	"strconv"
	"time"
)

// duration returns d with at most three significant places: "12.3s".
func duration(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 999500*time.Microsecond:
		return fmt.Sprintf("%dms", d.Round(time.Millisecond).Milliseconds())
	case d < 59950*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return clock(d.Round(time.Second))
}

// clock returns d in whole seconds that have passed, as a running clock shows it.
func clock(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// Size returns n bytes in binary units: "312.4 MiB".
func Size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, units := float64(n)/1024, "KMGTPE"
	for value >= 1023.95 && len(units) > 1 { // it would be printed as 1024.0
		value, units = value/1024, units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, units[0])
}

// count returns n, which is not negative, with separated thousands.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
