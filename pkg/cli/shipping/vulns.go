package shipping

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/vulns"
)

func newVulns(o commands) *cobra.Command {
	var ask vulns.Options
	var exceptions, openvex, sarif, author string
	c := &cobra.Command{
		Use:   "vulns [folder]",
		Short: "List known vulnerabilities in a release",
		Long: `vulns compares what a release consists of (default: the tree's _output/release-tars) with a database of Go's vulnerabilities, and
the Debian packages in its images with a file of Debian's security tracker.

A binary has a vulnerability of a module if it holds code of a package that the database names. Whether that code is ever called
is for people to say: release/vulns.yaml in the tree has exceptions, each with a reason and a last day.

The exit code is 1 if there is a vulnerability without an exception, or if an exception has expired. The output says which
slipway bump mends it.`,
		Example: "  slipway vulns --db file:///srv/vulndb --tracker debian-tracker.json\n" +
			"  slipway vulns v1.37.1 --db file:///srv/vulndb --tracker=off --openvex v1.37.1.openvex.json --author security@example.com",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if ask.DB == "" {
				return badrequest.Mark(errors.New("name a database of Go's vulnerabilities: --db file:///FOLDER or --db https://HOST; docs/vulns.md " +
					"says where there is one"))
			}
			if openvex != "" && author == "" {
				return badrequest.Mark(errors.New("--openvex: say who states it: --author security@example.com"))
			}
			dir, err := o.releaseFolder(args)
			if err != nil {
				return err
			}
			if ask.Release, err = release.Read(dir); err != nil {
				return noRelease(err, dir, len(args) == 0)
			}
			if exceptions == "" {
				if root, err := project.FindRoot(o.Dir); err == nil {
					exceptions = filepath.Join(root, filepath.FromSlash(vulns.ExceptionsFile))
				}
			}
			if exceptions != "" {
				if ask.Exceptions, err = vulns.ReadExceptions(exceptions); err != nil {
					return err
				}
			}
			ask.Dir, ask.Now, ask.Bump = dir, time.Now(), "slipway bump"
			report, err := vulns.Find(c.Context(), ask)
			if err != nil {
				return err
			}
			return o.showVulns(report, openvex, author, sarif)
		},
	}
	c.Flags().StringVar(&ask.DB, "db", "", "the database of Go's vulnerabilities: file:///FOLDER or https://HOST")
	c.Flags().StringVar(&ask.Tracker, "tracker", "", "a `file` of Debian's security tracker, as JSON, or off to look at Go code alone")
	c.Flags().StringVar(&exceptions, "exceptions", "", "a `file` of exceptions (default release/vulns.yaml of the tree)")
	c.Flags().StringVar(&openvex, "openvex", "", "write an OpenVEX document to a `file`")
	c.Flags().StringVar(&author, "author", "", "who states what is in the OpenVEX document")
	c.Flags().StringVar(&sarif, "sarif", "", "write SARIF to a `file`")
	return c
}

// showVulns prints a report and writes its documents. It returns an error if something in it is not excepted.
func (o commands) showVulns(report *vulns.Report, openvex, author, sarif string) error {
	for _, d := range []struct {
		file  string
		write func(io.Writer) error
	}{
		{openvex, func(w io.Writer) error { return report.OpenVEX(w, author) }},
		{sarif, report.SARIF},
	} {
		if d.file == "" {
			continue
		}
		if err := atomicfile.Write(d.file, 0o644, d.write); err != nil {
			return err
		}
	}
	if err := o.Answer(report, report.Text); err != nil {
		return err
	}
	if report.OK() {
		return nil
	}
	return fmt.Errorf("release %s has known vulnerabilities without an exception that holds: mend them, or say in %s why they are no danger",
		report.Release, vulns.ExceptionsFile)
}
