package making

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/make/plan"
	"slipway.build/pkg/mechanism/platform"
	"slipway.build/pkg/tree/input"
)

func newSource(o commands) *cobra.Command {
	var f makeFlags
	var hosts hostFlag
	var list, copyleft bool
	var modules string
	c := &cobra.Command{
		Use:   "source",
		Short: "Pack the tree with everything that a release is made of",
		Long: `source makes kubernetes-inputs.tar in _output/release-tars: the tree, every Go module of its go.mod files, the pinned Go,
and the Debian packages in images. On a machine without network, "make quick-release" in the unpacked file makes the release that
it makes here, with the same checksums.

The file depends on the tree alone, and _inputs/SHA256SUMS in it has the sums of all its members. "slipway verify" and
"sha256sum -c" check them. With --list, source prints what the file has besides the tree, and packs nothing.

With --modules, source writes Kubernetes' modules instead, k8s.io/kubernetes and those of its staging folder, as patches change them, for
programs outside of the tree. The folder is a module proxy, GOPROXY=file://DIR, and may have other versions already. The modules' version is
above upstream's, and below upstream's next: v0.37.3-0.acme.1 in a tree of version v1.37.2+acme.1.

With --copyleft, source makes kubernetes-debian-sources.tar in _output instead, or in the folder of --output: the source packages that
the Debian packages in images are built from. Copyleft licenses, such as the GPL, ask you to offer these to those who get an image. Each
file is checked by its sum in the index of sources, which Debian's archive signs.`,
		Example: "  slipway source --host linux/amd64 --platform linux/amd64\n  slipway source --list\n" +
			"  slipway source --modules /srv/modules\n  slipway source --copyleft --output /srv/sources",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if copyleft {
				if err := checkCopyleftFlags(c.Flags().Changed); err != nil {
					return err
				}
				return o.packDebianSources(c.Context(), f, list)
			}
			if c.Flags().Changed("modules") {
				if err := checkModulesFlags(c.Flags().Changed, modules); err != nil {
					return err
				}
				return o.publishModules(c.Context(), modules, f.dryRun)
			}
			req := plan.Request{Inputs: true}
			if err := hosts.apply(&req); err != nil {
				return err
			}
			if !list {
				return o.make(c, f, req)
			}
			_, planned, err := o.plan(c.Context(), f, req)
			if err != nil {
				return err
			}
			return o.Answer(planned.Inputs, func(w io.Writer) error { return writeInputs(w, planned.Inputs) })
		},
	}
	f.add(o, c, "all")
	hosts.add(c)
	c.Flags().BoolVar(&copyleft, "copyleft", false, "pack the sources of the Debian packages in images, and nothing else")
	c.Flags().BoolVar(&list, "list", false, "print what the file has besides the tree")
	c.Flags().StringVar(&modules, "modules", "", "write Kubernetes' modules, as patches change them, to this folder of a module proxy")
	_ = c.Flags().MarkHidden("all-platforms")
	return c
}

// A hostFlag says for which machines kubernetes-inputs.tar has the pinned Go.
type hostFlag string

func (h *hostFlag) add(c *cobra.Command) {
	c.Flags().StringVar((*string)(h), "host", "", "machines for which kubernetes-inputs.tar has the pinned Go, as in \"linux/amd64 "+
		"darwin/arm64\", or none (default those of --platform that release.yaml has sums for)")
}

// apply adds the machines to a request.
func (h hostFlag) apply(req *plan.Request) error {
	if h == "none" {
		req.NoHosts = true
		return nil
	}
	for _, name := range strings.Fields(strings.ReplaceAll(string(h), ",", " ")) {
		host, err := platform.Parse(name)
		if err != nil {
			return err
		}
		req.Hosts = append(req.Hosts, host)
	}
	return nil
}

// writeInputs lists the modules and packages in kubernetes-inputs.tar.
func writeInputs(w io.Writer, l *input.List) error {
	return session.WriteTable(w, "KIND\tNAME\tVERSION\tSUM", func(row func(...string)) {
		for _, m := range l.Modules {
			kind, sum := "module", m.Sum
			if sum == "" {
				kind, sum = "go.mod", m.GoModSum
			}
			row(kind, m.Path, m.Version.Version, sum)
		}
		for _, lock := range l.Debian {
			for _, p := range lock.Packages {
				row("debian", p.Name+":"+p.Arch, p.Version, p.SHA256)
			}
		}
	})
}
