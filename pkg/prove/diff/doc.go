// Package diff compares two releases, two archives or two Go programs, and says what differs.
//
// There are two verdicts: [Same], the same bytes, and [Different]. Slipway makes the same bytes by every road and on every machine, so any
// other byte has a reason to be found.
//
// [Compare] looks into folders, archives and saved container images, so that the file that differs is named, and not the tarball that holds
// it. Of release.json it names the artifacts and inputs. Of the API (openapi-spec/swagger.json) it names paths, kinds and fields. Of two
// programs it names what a person looks for first: another version of Go, other modules, other build settings, and the functions that only
// one of them has, or whose size differs. That is no proof of anything: a function of the same size may do something else, and data is not
// compared.
//
// What must never be in here: how anything is built.
package diff
