package shipping

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/debian"
	"slipway.build/pkg/mechanism/suggest"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/vulns"
	"slipway.build/pkg/tree/catalog"
)

func newVulns(o commands) *cobra.Command {
	var ask vulns.Options
	var exceptions, openvex, sarif, author string
	c := &cobra.Command{
		Use:   "vulns [folder...]",
		Short: "List known vulnerabilities in releases",
		Long: `vulns compares what a release consists of (default: the tree's _output/release-tars) with a database of Go's vulnerabilities, and
the Debian packages in its images with a file of Debian's security tracker.

A binary has a vulnerability of a module if it holds code of a package that the database names. Whether that code is ever called
is for people to say: release/vulns.yaml in the tree has exceptions, each with a reason and a last day. A patch whose message says
"Fixes: CVE-2026-12345" mends that in the modules that it changes.

The exit code is 1 if there is a vulnerability without an exception or a fix, or if an exception has expired. With --fail-on, those
that the database says are less severe do not count; those of no known severity do. The output says which slipway bump mends it.

A tracker that is an address is fetched once and kept, and asked each time whether it has changed.`,
		Example: "  slipway vulns --db file:///srv/vulndb --tracker debian-tracker.json\n" +
			"  slipway vulns v1.37.1 --db file:///srv/vulndb --tracker=off --openvex v1.37.1.openvex.json --author security@example.com",
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.declared(&ask); err != nil {
				return err
			}
			if ask.DB == "" {
				return badrequest.Mark(errors.New("name a database of Go's vulnerabilities: --db file:///FOLDER or --db https://HOST; docs/vulns.md " +
					"says where there is one"))
			}
			if openvex != "" && author == "" {
				return badrequest.Mark(errors.New("--openvex: say who states it: --author security@example.com"))
			}
			var dirs []string
			for _, arg := range args {
				dir, err := o.releaseFolder([]string{arg})
				if err != nil {
					return err
				}
				dirs = append(dirs, dir)
			}
			if len(args) == 0 {
				dir, err := o.releaseFolder(nil)
				if err != nil {
					return err
				}
				dirs = []string{dir}
			}
			ask.Override = "slipway override"
			if root, declared, err := o.Catalog(); err == nil { // otherwise it is no tree
				ask.Project = func(binary, module string) string { return declared.ProjectOf(root, binary, module) }
			}
			reports, err := o.findVulns(c.Context(), ask, exceptions, dirs, len(args) == 0)
			if err != nil {
				return err
			}
			return o.showVulns(reports, openvex, author, sarif)
		},
	}
	c.Flags().StringVar(&ask.DB, "db", "", "the database of Go's vulnerabilities: file:///FOLDER or https://HOST")
	c.Flags().StringVar(&ask.Tracker, "tracker", "",
		"a `file` of Debian's security tracker, as JSON, or its address, or off to look at Go code alone")
	c.Flags().StringVar(&ask.FailOn, "fail-on", "",
		"the least severity that is a failure: "+suggest.Enumerate(catalog.Severities(), "or")+" (default any)")
	c.Flags().StringVar(&exceptions, "exceptions", "", "a `file` of exceptions (default release/vulns.yaml of the tree)")
	c.Flags().StringVar(&openvex, "openvex", "", "write an OpenVEX document to a `file`")
	c.Flags().StringVar(&author, "author", "", "who states what is in the OpenVEX document")
	c.Flags().StringVar(&sarif, "sarif", "", "write SARIF to a `file`")
	return c
}

// declared fills in what the tree's release.yaml says and the user does not.
func (o commands) declared(ask *vulns.Options) error {
	root, err := project.FindRoot(o.Dir)
	if err != nil {
		return nil // outside of a tree, nothing is declared
	}
	c, err := catalog.Load(root)
	if err != nil {
		return err
	}
	fill(ask, root, c)
	return nil
}

func fill(ask *vulns.Options, root string, c *catalog.Catalog) {
	v := c.Vulnerabilities
	if v.Tracker != "" && v.Tracker != vulns.Off && !debian.IsTrackerAddress(v.Tracker) {
		v.Tracker = filepath.Join(root, filepath.FromSlash(v.Tracker))
	}
	ask.DB, ask.Tracker, ask.FailOn = cmp.Or(ask.DB, v.DB), cmp.Or(ask.Tracker, v.Tracker), cmp.Or(ask.FailOn, v.FailOn)
}

// stopVulnerable returns an error if the release in a folder of a tree has vulnerabilities that the tree's release.yaml does not let pass.
func (o commands) stopVulnerable(ctx context.Context, dir string) error {
	root, err := project.FindRoot(dir)
	if session.Is[*project.NoTreeError](err) {
		return nil
	}
	if err != nil {
		return err
	}
	c, err := catalog.Load(root)
	if err != nil || c.Vulnerabilities.FailOn == "" {
		return err
	}
	var ask vulns.Options
	fill(&ask, root, c)
	reports, err := o.findVulns(ctx, ask, filepath.Join(root, filepath.FromSlash(vulns.ExceptionsFile)), []string{dir}, true)
	if err != nil || reports[0].OK() {
		return err
	}
	if err := reports[0].Text(o.Err); err != nil {
		return err
	}
	return errVulnerable(reports[0])
}

func errVulnerable(r *vulns.Report) error {
	return fmt.Errorf("release %s has known vulnerabilities without an exception that holds: mend them, or say in %s why they are no danger",
		r.Release, vulns.ExceptionsFile)
}

// findVulns looks at the releases in some folders.
func (o commands) findVulns(ctx context.Context, ask vulns.Options, exceptions string, dirs []string, own bool) ([]*vulns.Report, error) {
	if debian.IsTrackerAddress(ask.Tracker) {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		if ask.Tracker, err = debian.FetchTracker(ctx, ask.Tracker, filepath.Join(cache, "slipway", "debian")); err != nil {
			return nil, fmt.Errorf("security tracker: %w", err)
		}
	}
	if exceptions == "" {
		if root, err := project.FindRoot(o.Dir); err == nil {
			exceptions = filepath.Join(root, filepath.FromSlash(vulns.ExceptionsFile))
		}
	}
	if exceptions != "" {
		var err error
		if ask.Exceptions, err = vulns.ReadExceptions(exceptions); err != nil {
			return nil, err
		}
	}
	var reports []*vulns.Report
	for _, dir := range dirs {
		var err error
		if ask.Release, err = release.Read(dir); err != nil {
			return nil, noRelease(err, dir, own)
		}
		ask.Dir, ask.Now, ask.Bump = dir, time.Now(), "slipway bump"
		report, err := vulns.Find(ctx, ask)
		if err != nil {
			return nil, err
		}
		reports = append(reports, report)
	}
	return reports, nil
}

// showVulns prints reports and writes their documents. It returns an error if something in them is not excepted.
func (o commands) showVulns(reports []*vulns.Report, openvex, author, sarif string) error {
	for _, d := range []struct {
		file  string
		write func(io.Writer) error
	}{
		{openvex, func(w io.Writer) error { return vulns.OpenVEX(w, author, reports...) }},
		{sarif, func(w io.Writer) error { return vulns.SARIF(w, reports...) }},
	} {
		if d.file == "" {
			continue
		}
		if err := atomicfile.Write(d.file, 0o644, d.write); err != nil {
			return err
		}
	}
	var all any = reports
	if len(reports) == 1 {
		all = reports[0]
	}
	err := o.Answer(all, func(w io.Writer) error {
		for _, r := range reports {
			if err := r.Text(w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range reports {
		if !r.OK() {
			errs = append(errs, errVulnerable(r))
		}
	}
	return errors.Join(errs...)
}
