package shipping

import (
	"cmp"
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
	"slipway.build/pkg/ship/bundle"
	"slipway.build/pkg/ship/publish"
	"slipway.build/pkg/ship/site"
)

func newPublish(o commands) *cobra.Command {
	var by trusted
	var to, images, registry, layout, address string
	var move, packages []string
	var days int
	var dryRun bool
	c := &cobra.Command{
		Use:   "publish [folder|bundle]",
		Short: "Publish a signed release: to a folder that a web server serves, to a registry, or both",
		Long: `publish verifies the signed release in a folder (default: the tree's _output/release-tars), and puts it into another
folder, for any web server: release/VERSION/ below --to has the release's files unchanged, its programs as bin/OS/ARCH/NAME with their
digests, a page, and kubeadm.yaml and images.txt with the names of the images. slipway verify accepts that folder and its URL.

Then markers name the version as upstream's do: release/stable.txt, stable-1.txt and stable-1.37.txt, and latest.txt and so on, which
name candidates, too. A marker never goes back to an older version: +acme.10 is newer than +acme.9. None names a version without a tag.

--registry registry.example.com/k8s gets the images, for all platforms, with signatures, provenance and bills of materials. --layout
has them (default: the tree's _output/release-images/oci). Tags come last. The tag of a release never moves. Tags that other projects have
chosen, such as etcd:3.7.0-0, move from images of older releases, as trusted provenances say; anything else wants --move-tag etcd.
Credentials are those of docker login, and of Docker's credential helpers.

A bundle, which slipway bundle writes, has the images in it: all of it is verified before the first byte is sent, and only --registry is
a target. The images of a bundle for one platform have tags there for that platform alone.

--packages-key ~/packages.key adds the release's debs and rpms to repositories below --to, which that key of OpenPGP signs:
core:/stable:/v1.37/deb for apt, and core:/stable:/v1.37/rpm for dnf, the paths that Kubernetes' own repositories have; candidates are
below core:/prerelease:. They keep all versions. A key of gpg, such as one on a card, is gpg:FINGERPRINT: gpg is asked for each signature.
What packages require must be there, or be one of basePackages in release.yaml. The package acme-archive-keyring has the public keys. Name
two keys while users change from one to another, first the one that they have: it signs rpms. --url https://dl.example.com, where users
find --to, adds acme.sources and acme.repo, with which apt and dnf find the repositories. --valid-days 30 has apt refuse the index after
that time, until the same command has signed it again.

What slipway verify does not accept with the same --key, --threshold and --trust is not published, nor a release of a tree with changes
that are in no commit, nor one under embargo. A file that was published never changes: if one exists with another content, nothing is
written. A run that was interrupted is continued by the same command. Nothing is built.`,
		Example: "  slipway publish --key ~/release.pub --to file:///srv/k8s --dry-run\n" +
			"  slipway publish --key ~/release.pub --to file:///srv/k8s\n  slipway publish dist --key ~/release.pub --to file:///srv/k8s",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var channel publish.Channel
			var err error
			if to == "" && registry == "" {
				return badrequest.Mark(errors.New("name a target: --to file:///srv/k8s, or --registry registry.example.com/k8s"))
			}
			if registry == "" && (layout != "" || len(move) > 0) {
				return badrequest.Mark(errors.New(
					"--layout and --move-tag are about images: name the registry, --registry registry.example.com/k8s"))
			}
			if to == "" && len(packages) > 0 {
				return badrequest.Mark(errors.New("repositories of packages are in a folder: name it, --to file:///srv/k8s"))
			}
			if len(packages) == 0 && (address != "" || c.Flags().Changed("valid-days")) {
				return badrequest.Mark(errors.New("--url and --valid-days are about repositories of packages: " +
					"name the key that signs these, --packages-key ~/packages.key"))
			}
			if to != "" {
				if channel, err = openTarget(to); err != nil {
					return err
				}
			}
			how := publish.Repositories{URL: address, Now: o.Now()}
			if c.Flags().Changed("valid-days") {
				how.Days = &days
			}
			if err := how.Check(); err != nil {
				return err
			}
			if how.Keys, err = o.packageKeys(c.Context(), packages); err != nil {
				return err
			}
			want, err := by.want(c.Context())
			if err != nil {
				return err
			}
			dir, err := o.releaseFolder(args)
			if err != nil {
				return err
			}
			var accepted *publish.Release
			if isFile(args) {
				if to != "" || images != "" || layout != "" || len(packages) > 0 {
					return badrequest.Mark(fmt.Errorf("%s is a bundle, of which only images are published: leave out --to, "+
						"--image-repository, --layout and --packages-key, or name the release's folder", dir))
				}
				b, err := bundle.Open(dir)
				if err != nil {
					return err
				}
				defer b.Close()
				accepted, err = publish.AcceptBundle(c.Context(), b, want, o.Now())
				if err != nil {
					return o.refused(err)
				}
			} else if accepted, err = publish.Accept(c.Context(), dir, want, cmp.Or(images, registry), o.Now()); err != nil {
				return noRelease(o.refused(err), dir, len(args) == 0)
			}
			if len(packages) > 0 {
				if err := accepted.SignPackages(how); err != nil {
					return err
				}
			}
			var both publications
			if channel != nil {
				if both.Site, err = accepted.Plan(c.Context(), channel); err != nil {
					return err
				}
			}
			if registry != "" {
				both.Images, err = accepted.PlanImages(c.Context(), registry, layoutFor(dir, layout), move)
				if refused, ok := errors.AsType[*publish.TagError](err); ok && len(refused.Fixed()) > 0 {
					return fmt.Errorf("%w\nTo move them all the same: --move-tag %s", err, strings.Join(refused.Fixed(), ","))
				}
				if err != nil {
					return err
				}
			}
			return o.send(c.Context(), both, dryRun)
		},
	}
	by.flags(c)
	toFlags(c, &to, &dryRun)
	c.Flags().StringVar(&registry, "registry", "", "the `repository` below which images are pushed, such as registry.example.com/k8s")
	c.Flags().StringVar(&layout, "layout", "", "the OCI image layout of the release's images, in a `folder`")
	c.Flags().StringSliceVar(&move, "move-tag", nil, "an `image` whose tag may move, though nothing says that it moves forward")
	packagesFlag(c, &packages)
	c.Flags().StringVar(&address, "url", "",
		"the `URL` at which users find --to, such as https://dl.example.com, for acme.sources and acme.repo")
	c.Flags().IntVar(&days, "valid-days", 0,
		"for how many `days` apt accepts the index of packages; 0: forever (default: as for the index before)")
	c.Flags().StringVar(&images, "image-repository", "",
		"the `repository` that has the images, for kubeadm.yaml and images.txt (default --registry, or that of the release)")
	return c
}

func newWithdraw(o commands) *cobra.Command {
	var to, reason string
	var packages []string
	var dryRun bool
	c := &cobra.Command{
		Use:   "withdraw version",
		Short: "Say that nobody should use a published release any more",
		Long: `withdraw lets the markers that name a version, such as release/stable.txt, name the newest one that is not withdrawn. The files
of the version stay, for those who have pinned it. Its page says why it was withdrawn, and slipway verify says so, too. Repositories of
packages list it no more; --packages-key signs them again.`,
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
			keys, err := o.packageKeys(c.Context(), packages)
			if err != nil {
				return err
			}
			p, err := publish.Withdraw(c.Context(), channel, args[0], reason, publish.Repositories{Keys: keys, Now: o.Now()})
			if errors.Is(err, publish.ErrNoKey) {
				return badrequest.Mark(fmt.Errorf("%w: --packages-key ~/packages.key", err))
			}
			if err != nil {
				return err
			}
			return o.send(c.Context(), publications{Site: p}, dryRun)
		},
	}
	toFlags(c, &to, &dryRun)
	packagesFlag(c, &packages)
	c.Flags().StringVar(&reason, "reason", "", "why, in one line")
	return c
}

func packagesFlag(c *cobra.Command, files *[]string) {
	c.Flags().StringSliceVar(files, "packages-key", nil,
		"the `key` of OpenPGP that signs repositories of packages: a file, or gpg:FINGERPRINT; several sign together, the first rpms")
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

// publications are those of one command.
type publications struct {
	Images *publish.Images      `json:"images,omitempty"`
	Site   *publish.Publication `json:"site,omitempty"`
}

// send sends publications, unless they are only asked for, and shows them. The images are first: the site names them.
func (o commands) send(ctx context.Context, all publications, dryRun bool) error {
	unfinished := func(version, target string, err error) error {
		return fmt.Errorf("not all of %s is at %s: %w: mend that, and run the same command again", version, target, err)
	}
	if p := all.Images; p != nil && !dryRun {
		if err := p.Send(ctx); err != nil {
			return unfinished(p.Version, p.Repository, err)
		}
	}
	if p := all.Site; p != nil && !dryRun {
		if err := p.Send(ctx, func() { o.Say("waiting for somebody else who writes to " + p.Target) }); err != nil {
			return unfinished(p.Version, p.Target, err)
		}
	}
	return o.Answer(all, func(w io.Writer) error {
		if all.Images != nil {
			if err := writeImages(w, all.Images, dryRun); err != nil || all.Site == nil {
				return err
			}
			fmt.Fprintln(w)
		}
		return writePublication(w, all.Site, dryRun)
	})
}

// writeImages shows what a registry gets to people: what is new, and tags that move or stay.
func writeImages(w io.Writer, p *publish.Images, dryRun bool) error {
	verb := map[bool]string{false: "sent", true: "would be sent"}[dryRun]
	count := map[bool]map[bool]int{true: {}, false: {}} // whether it is an image, and there
	for _, m := range p.Manifests {
		count[m.Of == ""][m.State == publish.There]++
	}
	for _, t := range p.Tags {
		switch {
		case t.Note != "":
			fmt.Fprintf(w, "%s: %s\n", t.Name, t.Note)
		case t.State != publish.There:
			fmt.Fprintf(w, "%s: new\n", t.Name)
		}
	}
	bytes := ""
	if !dryRun {
		bytes = ", " + console.Size(p.Sent)
	}
	_, err := fmt.Fprintf(w, "%s: %s and %s %s%s; %s and %s there already\n", p.Repository, session.Count(count[true][false], "image"),
		session.Count(count[false][false], "referrer"), verb, bytes, session.Count(count[true][true], "image"),
		session.Count(count[false][true], "referrer"))
	return err
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
	if p.Packages != "" {
		fmt.Fprintf(w, "repositories of packages: %[1]s/deb and %[1]s/rpm\n", p.Packages)
		switch {
		case len(p.ForUsers) > 0:
			fmt.Fprintf(w, "files with which users add them: %s\n", strings.Join(p.ForUsers, " and "))
		case p.Withdrawn == "":
			fmt.Fprintln(w, "no files with which users add them: --url https://dl.example.com says where they are")
		}
		if n := len(p.OtherKey); n > 0 {
			fmt.Fprintf(w, "an earlier key has signed %s of it, and machines that never had that key refuse them: "+
				"name it as the last --packages-key\n", session.Count(n, "rpm"))
		}
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
