// Package rules has the files of this folder that Bazel reads, for trees without a copy of them. See package generate.
package rules

import "embed"

// Files holds the files by their names in this folder. workspace.txtar in generated/ has those at the top of the tree.
//
//go:embed *.bzl *.sh BUILD.bazel generated/workspace.txtar modules package_metadata patches
var Files embed.FS
