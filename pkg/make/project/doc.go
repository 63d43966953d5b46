// Package project opens a tree: catalog, settings, version, sources, patches, the pinned Go and the roads that can compile in it, each read
// once. It also says where in the tree things are made.
//
// What must never be in here: what a release holds, and how anything in it is made.
package project
