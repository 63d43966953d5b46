// Package documents has tests of what people write. Commands in README.md, CHANGELOG.md, docs and the other documents have subcommands,
// flags and make targets that exist, and files and links lead somewhere. Comments in pkg/ have no snippets in Go, which only compile as
// Example functions, and the strings of packages below pkg/cli name no commands. Nothing is run.
package documents
