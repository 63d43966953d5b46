package publish

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.build/pkg/mechanism/apt"
	"slipway.build/pkg/mechanism/openpgp"
	"slipway.build/pkg/release"
)

// What cannot be installed from a repository and the system's own is not published.
func TestRepositoriesAreClosed(t *testing.T) {
	t.Parallel()
	o, to, key := newOwner(t), t.TempDir(), newKey(t, 0)
	none, both := release.BasePackages{}, []string{"deb", "rpm"}
	_, err := o.publishPackages(t, o.requiring(t, "v1.37.0+acme.1", "iptables", release.BasePackages{Deb: []string{"iptables"}}), to, key)
	if lacks, ok := errors.AsType[*LackError](err); !ok || len(contents(t, to)) > 0 ||
		!slices.Equal(lacks.Lacks, []string{"rpm tool 1.37.0+acme.1-1 (x86_64) needs iptables"}) {
		t.Errorf("without iptables: %v, and %d files were sent", err, len(contents(t, to)))
	}
	if _, err := o.publishPackages(t, o.packaged(t, "v1.37.0+acme.1"), to, key); err != nil {
		t.Fatal(err)
	}
	check := func(requires string, want []string) {
		t.Helper()
		accepted, err := Accept(t.Context(), o.requiring(t, "v1.37.0+acme.2", requires, none), o.want(), "", time.Now())
		if err == nil {
			err = accepted.SignPackages(Repositories{Keys: openpgp.Keys{key}})
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = accepted.Plan(t.Context(), folder(to))
		var got []string
		if lacks, ok := errors.AsType[*LackError](err); ok {
			for _, one := range lacks.Lacks {
				got = append(got, one[:3])
			}
		} else if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q lack it, want %q", requires, got, want)
		}
	}
	for requires, want := range map[string][]string{
		"tool < 1.37.0+acme.2": nil, "tool < 1.37.0+acme.1": both,
		"tool > 1.37.0+acme.1": nil, "tool > 1.37.0+acme.2-1": both,
		"tool >= 1.37.0~rc.1": nil, "tool >= 1.37.0+acme.10": both,
		"tool <= 1.37.0+acme.1-1": nil, "tool <= 1.37.0": both,
		"tool = 1.37.0+acme.1-1": nil, "tool = 1.37.0+acme.1": {"deb"}, // for rpm, this is every release of that version
		"tools": both,
	} {
		check(requires, want)
	}
	p, err := Withdraw(t.Context(), folder(to), "v1.37.0+acme.1", "it leaks", Repositories{Keys: openpgp.Keys{key}})
	if err == nil {
		err = p.Send(t.Context(), func() {})
	}
	if err != nil {
		t.Fatal(err)
	}
	check("tool < 1.37.0+acme.2", both)
}

// An index that is good for some days is signed again by the same publication, and by a withdrawal.
func TestIndexesThatEnd(t *testing.T) {
	t.Parallel()
	o, to, key := newOwner(t), t.TempDir(), newKey(t, 0)
	dir, now, days := o.packaged(t, "v1.37.0+acme.1"), time.Unix(1_750_000_000, 0), 30
	index := func(step string, wantDate, wantUntil time.Time) {
		t.Helper()
		signed, err := os.ReadFile(filepath.Join(to, "core:/stable:/v1.37/deb/InRelease"))
		if err != nil {
			t.Fatal(err)
		}
		date, until, err := apt.Dates(signed)
		if err != nil || !date.Equal(wantDate) || !until.Equal(wantUntil) {
			t.Errorf("%s: from %s until %s, %v; want from %s until %s", step, date, until, err, wantDate, wantUntil)
		}
	}
	publish := func(days *int) {
		t.Helper()
		if _, err := o.publishAs(t, dir, to, Repositories{Keys: openpgp.Keys{key}, URL: address, Days: days, Now: now}); err != nil {
			t.Fatal(err)
		}
	}
	publish(nil)
	index("without an end", time.Unix(1_700_000_000, 0), time.Time{})
	publish(&days)
	index("for 30 days", now, now.AddDate(0, 0, 30))
	run := newApt(t, to)
	if out, err := run("apt-get", "update", "--error-on=any"); err == nil || !strings.Contains(out, "is expired") {
		t.Errorf("apt after the end: %v\n%s", err, out)
	}
	now = now.AddDate(0, 0, 7)
	publish(nil)
	index("a week later", now, now.AddDate(0, 0, 30))
	now = now.AddDate(0, 0, 7)
	p, err := Withdraw(t.Context(), folder(to), "v1.37.0+acme.1", "it leaks", Repositories{Keys: openpgp.Keys{key}, Now: now})
	if err == nil {
		err = p.Send(t.Context(), func() {})
	}
	if err != nil {
		t.Fatal(err)
	}
	index("withdrawn", now, now.AddDate(0, 0, 30))
	days = 0
	dir = o.packaged(t, "v1.37.0+acme.2")
	publish(&days)
	index("forever", now.Add(time.Second), time.Time{})
	if out, err := run("apt-get", "update", "--error-on=any"); err != nil {
		t.Errorf("apt of an index without an end: %v\n%s", err, out)
	}
}

func TestNamesForUsers(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.37.0": "kubernetes", "v1.37.0-rc.1+Acme.10": "acme", "v1.37.0+my-acme-1-rc1": "my-acme",
		"v1.37.0+acme2.1": "acme2", "v1.37.0+1": "kubernetes",
	} {
		if got := usersName(version); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}
