// Package architecture holds the map of the packages in pkg/: what each is for, and what it must never know. Its test compares the
// map with what the packages import and with the tables in docs/architecture.md.
//
//	go test ./test/architecture            # does the map hold?
//	go test ./test/architecture -update    # write the tables
//
// A new package needs a row in rules. A rule that does not hold yet is listed in pending, which must become empty.
//
// What must never be in here: rules about anything but imports.
package architecture
