package target

import (
	"path"

	"slipway.build/pkg/make/api"
	"slipway.build/pkg/make/project"
	"slipway.build/pkg/mechanism/action"
	"slipway.build/pkg/tree/catalog"
)

// An API is a folder of files that say what the API of a kube-apiserver is.
type API struct{ Server, Etcd *Binary } // for this machine

func (*API) ID() string        { return "api" }
func (t *API) Needs() []Target { return []Target{t.Server, t.Etcd} }

// File returns the folder.
func (*API) File() (_, _ string) { return project.API, path.Base(project.API) }

// Actions writes the files.
func (t *API) Actions(b *Build) ([]*action.Action, error) {
	return one(api.Action(b.Root, api.Spec{Server: t.Server.Path, Etcd: t.Etcd.Path, Output: project.API}))
}

// Tarball returns a tarball of the folder, below top.
func (t *API) Tarball(top string) *Tarball {
	return &Tarball{
		Name: catalog.APITarball, Top: top, Version: true, Members: []Member{{Of: t, From: project.API + "/", To: path.Base(project.API)}},
	}
}
