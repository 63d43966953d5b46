package road

import (
	"errors"
	"strings"
	"testing"

	"slipway.build/pkg/mechanism/badrequest"
)

func TestUnsupportedGoFlagsAreRefused(t *testing.T) {
	t.Parallel()
	const reads, quoted, odd = "names a file or program", "quotes and blanks within a flag are not supported", "not a flag like"
	for goflags, want := range map[string]string{
		"-overlay=o.json":                   reads,
		"--overlay=o.json":                  reads,
		"-v -modfile=other.mod":             reads,
		"-pgo=cpu.pprof":                    reads,
		"-pgo":                              reads,
		"-toolexec=/usr/bin/time":           reads,
		"-exec=qemu":                        reads,
		"-pkgdir=/pkg":                      reads,
		"-compiler=gccgo":                   reads,
		"'-tags=a b'":                       quoted,
		`"-tags=a,b"`:                       quoted,
		`-tags="a b"`:                       quoted,
		"-tags a":                           odd,
		"tags=a":                            odd,
		"---v":                              odd,
		"-":                                 odd,
		"--":                                odd,
		"-=x":                               odd,
		"-v -n":                             "nothing would be compiled",
		"--n=true":                          "nothing would be compiled",
		"":                                  "",
		"-mod=mod -tags=a,b --v -p=2":       "",
		"-pgo=off -pgo=auto":                "",
		"-gcflags=all=-N\t-ldflags=-X=a=b ": "",
	} {
		err := Options{GoFlags: goflags}.validate()
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", goflags, err)
			}
			continue
		}
		var flag *FlagError
		if !errors.As(err, &flag) || !badrequest.Is(err) || !strings.HasPrefix(err.Error(), "GOFLAGS: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want a FlagError with %q", goflags, err, want)
		}
	}
}

func TestEmptyTagsOverrideEarlierTags(t *testing.T) {
	t.Parallel()
	if got := UserTags("-tags=a -tags="); len(got) > 0 {
		t.Errorf("tags %q", got)
	}
}
