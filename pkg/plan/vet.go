package plan

import (
	"context"
	"io"

	"slipway.build/pkg/catalog"
)

// Vet runs go vet over the components' module, by the Go and the flags that they are compiled with: so that what it needs
// of Kubernetes is in the Go cache already, and it does not compile all of it a second time.
func (p *Project) Vet(ctx context.Context, out io.Writer) error {
	module, err := loadModule(p.Root, p.Catalog.Module)
	if err != nil {
		return err
	}
	b := &builder{Project: p, ctx: ctx, module: module}
	args := append([]string{"vet"}, b.compilation(catalog.Host()).BuildFlags()...)
	return b.goCommand(ctx, catalog.Host(), out, append(args, "./...")...)
}
