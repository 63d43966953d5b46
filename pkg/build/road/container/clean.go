package container

import (
	"context"
	"errors"

	"slipway.build/pkg/build/kubecross"
	"slipway.build/pkg/mechanism/engine"
)

// tidy removes build images of this tree that are no longer what images/kube-cross says.
func (r *Road) tidy(ctx context.Context, s *session) error {
	_, err := kubecross.Tidy(ctx, s.engine, s.owner, s.image)
	return s.said(ctx, err)
}

// Clean removes from an engine all that the tree in root has there, and names it.
func Clean(ctx context.Context, root string) (removed []string, err error) {
	e, err := engine.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	owner := engine.OwnerOf(root)
	containers, err1 := e.RemoveContainers(ctx, owner)
	volumes, err2 := e.RemoveVolumes(ctx, owner)
	images, err3 := kubecross.Tidy(ctx, e, owner, "")
	removed = append(append(containers, volumes...), images...)
	return removed, errors.Join(err1, err2, err3)
}
