package shipping

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/console"
	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/ship/publish"
	"slipway.build/pkg/ship/site"
	"slipway.build/pkg/ship/verify"
)

func newPublish(o commands) *cobra.Command {
	var by trusted
	var to, images string
	var dryRun bool
	c := &cobra.Command{
		Use:   "publish [folder]",
		Short: "Publish a signed release to a folder that a web server serves",
		Long: `publish verifies the signed release in a folder (default: the tree's _output/release-tars), and puts it into another
folder, for any web server: release/VERSION/ below --to has the release's files unchanged, its programs as bin/OS/ARCH/NAME with their
digests, a page, and kubeadm.yaml and images.txt with the names of the images. slipway verify accepts that folder and its URL.

Then markers name the version as upstream's do: release/stable.txt, stable-1.txt and stable-1.37.txt, and latest.txt and so on, which
name candidates, too. A marker never goes back to an older version: +acme.10 is newer than +acme.9. None names a version without a tag.

What slipway verify does not accept with the same --key, --threshold and --trust is not published, nor a release of a tree with changes
that are in no commit, nor one under embargo. A file that was published never changes: if one exists with another content, nothing is
written. A run that was interrupted is continued by the same command. Nothing is built.`,
		Example: "  slipway publish --key ~/release.pub --to file:///srv/k8s --dry-run\n" +
			"  slipway publish --key ~/release.pub --to file:///srv/k8s\n  slipway publish dist --key ~/release.pub --to file:///srv/k8s",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			channel, err := openTarget(to)
			if err != nil {
				return err
			}
			policy, err := by.policy(c.Context())
			if err != nil {
				return err
			}
			if policy == nil {
				return badrequest.Mark(errors.New("name the public key that must have signed the release: --key ~/release.pub"))
			}
			dir, err := o.releaseFolder(args)
			if err != nil {
				return err
			}
			accepted, err := publish.Accept(c.Context(), dir, verify.Want{Trust: policy}, images, o.Now())
			if refused, ok := errors.AsType[*publish.RefusedError](err); ok {
				return errors.Join(refused.Report.Text(o.Err), err)
			}
			if err != nil {
				return noRelease(err, dir, len(args) == 0)
			}
			p, err := accepted.Plan(c.Context(), channel)
			if err != nil {
				return err
			}
			return o.send(c.Context(), p, dryRun)
		},
	}
	by.flags(c)
	toFlags(c, &to, &dryRun)
	c.Flags().StringVar(&images, "image-repository", "",
		"the `repository` that has the images, for kubeadm.yaml and images.txt, if it is not that of the release")
	return c
}

func newWithdraw(o commands) *cobra.Command {
	var to, reason string
	var dryRun bool
	c := &cobra.Command{
		Use:   "withdraw version",
		Short: "Say that nobody should use a published release any more",
		Long: `withdraw lets the markers that name a version, such as release/stable.txt, name the newest one that is not withdrawn. The files
of the version stay, for those who have pinned it. Its page says why it was withdrawn, and slipway verify says so, too.`,
		Example: `  slipway withdraw v1.37.2+acme.1 --to file:///srv/k8s --reason "kubelets leak memory" --dry-run`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			channel, err := openTarget(to)
			if err != nil {
				return err
			}
			if reason == "" {
				return badrequest.Mark(fmt.Errorf("say why %s is withdrawn: --reason TEXT", args[0]))
			}
			p, err := publish.Withdraw(c.Context(), channel, args[0], reason)
			if err != nil {
				return err
			}
			return o.send(c.Context(), p, dryRun)
		},
	}
	toFlags(c, &to, &dryRun)
	c.Flags().StringVar(&reason, "reason", "", "why, in one line")
	return c
}

func toFlags(c *cobra.Command, to *string, dryRun *bool) {
	c.Flags().StringVar(to, "to", "", "the `URL` of the target: file:///srv/k8s is a folder")
	c.Flags().BoolVar(dryRun, "dry-run", false, "say what would be written, and write nothing")
}

func openTarget(to string) (publish.Channel, error) {
	if to == "" {
		return nil, badrequest.Mark(errors.New("name a target: --to file:///srv/k8s"))
	}
	return publish.Open(to)
}

// send sends a publication, unless it is only asked for, and shows it.
func (o commands) send(ctx context.Context, p *publish.Publication, dryRun bool) error {
	if !dryRun {
		if err := p.Send(ctx, func() { o.Say("waiting for somebody else who writes to " + p.Target) }); err != nil {
			return fmt.Errorf("not all of %s is at %s: %w: mend that, and run the same command again", p.Version, p.Target, err)
		}
	}
	return o.Answer(p, func(w io.Writer) error { return writePublication(w, p, dryRun) })
}

// writePublication shows a publication to people.
func writePublication(w io.Writer, p *publish.Publication, dryRun bool) error {
	verb := map[bool]string{false: "sent", true: "would be sent"}[dryRun]
	type row struct {
		files int
		bytes int64
	}
	rows := map[string]*row{}
	var order []string
	var all, there row
	count := func(name string, size int64, state publish.State) {
		if state == publish.There {
			there.files, there.bytes = there.files+1, there.bytes+size
			return
		}
		all.files, all.bytes = all.files+1, all.bytes+size
		group := groupOf(strings.TrimPrefix(name, site.Folder(p.Version)+"/"))
		if rows[group] == nil {
			rows[group] = &row{}
			order = append(order, group)
		}
		rows[group].files++
		rows[group].bytes += size
	}
	for _, object := range p.Objects {
		count(object.Path, object.Size, object.State)
	}
	for _, page := range p.Pages {
		count(page.Path, page.Size, page.State)
	}
	err := session.WriteTable(w, verb+" below "+site.Folder(p.Version)+"\tfiles\tsize", func(line func(...string)) {
		for _, group := range order {
			line(group, fmt.Sprint(rows[group].files), console.Size(rows[group].bytes))
		}
	})
	if err != nil {
		return err
	}
	if len(order) > 0 {
		fmt.Fprintln(w)
	}
	for _, m := range p.Markers {
		fmt.Fprintln(w, markerLine(m, dryRun))
	}
	if len(p.Markers) == 0 {
		fmt.Fprintf(w, "markers stay: %s has no tag\n", p.Version)
	}
	if p.Withdrawn != "" {
		fmt.Fprintf(w, "%s is withdrawn: %s\n", p.Version, p.Withdrawn)
	}
	fmt.Fprintf(w, "below the address of %s, the release is at %s\n", p.Target, p.URLPath)
	_, err = fmt.Fprintf(w, "%s, %s %s; %s, %s there already\n", session.Count(all.files, "file"), console.Size(all.bytes), verb,
		session.Count(there.files, "file"), console.Size(there.bytes))
	return err
}

// groupOf returns the name of the row in which a file of a release's folder is shown: of many small ones, together.
func groupOf(name string) string {
	dir, _, below := strings.Cut(name, "/")
	switch ext := path.Ext(name); {
	case ext == ".sha256" || ext == ".sha512":
		return "*.sha256, *.sha512"
	case below && dir != "bin":
		return dir + "/"
	}
	return name
}

func markerLine(m publish.Marker, dryRun bool) string {
	text := m.Path + ": "
	switch {
	case m.State == publish.There && m.Is == "":
		text += "there is none"
	case m.State == publish.There:
		text += "stays " + m.Is
	case m.Is == "":
		text += map[bool]string{false: "removed", true: "would be removed"}[dryRun] + ", was " + m.Was
	default:
		text += map[bool]string{false: "is now ", true: "would be "}[dryRun] + m.Is
		if m.Was != "" {
			text += ", was " + m.Was
		}
	}
	if m.Note != "" {
		text += ": " + m.Note
	}
	return text
}
