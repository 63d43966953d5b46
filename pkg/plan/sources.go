package plan

import "slipway.build/pkg/source"

// sources finds the tree's sources.
func (b *builder) sources() (*source.Tree, error) { return source.Find(b.ctx, b.Root, b.getenv) }
