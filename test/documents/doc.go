// Package documents has a test of README.md, CHANGELOG.md, docs and the other documents that people write: commands in them have
// subcommands, flags and make targets that exist, and files and links lead somewhere. Nothing is run.
package documents
