package stamp

import (
	"strings"
	"time"
)

// A Stamp says what version something is.
type Stamp struct {
	Version   string    // v1.36.3+slipway.20261120235300.0123456789ab
	Commit    string    // in hex, in full unless it was set shorter
	TreeState string    // "clean", "dirty", or "archive" for sources that were exported from git by other means
	Major     string    // 1
	Minor     string    // 36, or 36+ if Version is a pre-release
	Date      time.Time // UTC, whole seconds: the time of every file that is made
}

// ImageTag is the version as a container image's tag, which may not have a '+'.
func (s Stamp) ImageTag() string { return imageTag(s.Version) }

func imageTag(version string) string { return strings.ReplaceAll(version, "+", "_") }
