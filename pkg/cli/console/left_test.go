package console

import (
	"testing"
	"time"

	"slipway.build/pkg/mechanism/action"
)

func TestACompileSaysHowMuchIsLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		done, total int64
		unit        action.Unit
		took        time.Duration
		want        string
	}{
		{1000, 3000, action.Packages, 5 * time.Minute, "about 10 min left"},
		{2900, 3000, action.Packages, 5 * time.Minute, "under a minute left"},
		{100, 3000, action.Packages, 5 * time.Minute, ""}, // no pace yet
		{1000, 3000, action.Packages, 20 * time.Second, ""},
		{1000, 0, action.Packages, 5 * time.Minute, ""},    // how many there are is not known yet
		{3000, 3000, action.Packages, 5 * time.Minute, ""}, // links
		{1000, 3000, action.Bytes, 5 * time.Minute, ""},
	} {
		j := job{start: epoch, done: c.done, total: c.total, unit: c.unit}
		if got := j.left(epoch.Add(c.took)); got != c.want {
			t.Errorf("%d of %d %s in %s: %q, want %q", c.done, c.total, c.unit, c.took, got, c.want)
		}
	}
}
