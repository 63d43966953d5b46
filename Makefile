# The front door. Every target hands over to a mage target of the same name (magefiles/), compiled once
# into _output/.slipway/mage and again when the toolchain's sources change. `make help` lists them.
#
# GNU make; no path is ever absolute, so that a folder with spaces does no harm.

.DEFAULT_GOAL := all
MAKEFLAGS += --no-print-directory --no-builtin-rules

STATE := _output/.slipway
MAGE  := $(STATE)/mage

# The toolchain is compiled by the Go that release.yaml pins and by the components' flags, so that both share
# one compiled standard library in the Go cache.
GO_PINNED := $(shell sed -n 's/^  version: *\(go[0-9.]*\)$$/\1/p' release/release.yaml)
GO_ENV    := GOTOOLCHAIN=$(GO_PINNED) GOFLAGS=-trimpath\ -buildvcs=false GOWORK=off CGO_ENABLED=0 \
             GOOS= GOARCH= GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= GODEBUG=

SOURCES := go.mod go.sum $(wildcard magefiles/*.go pkg/*/*.go pkg/*/*/*.go)

TARGETS := all cross release quick-release release-images quick-release-images package-tarballs \
           test test-integration bench soak update verify clean help slipway

.PHONY: $(TARGETS)

# `make kubectl` is `make WHAT=kubectl`, for every component of the catalog.
COMPONENTS := $(shell sed -n 's/^- {name: \([^,]*\), \(package\|test\):.*/\1/p' release/release.yaml)
.PHONY: $(COMPONENTS)

# The + makes `make -n` hand over as well: mage then prints the plan and does nothing.
$(TARGETS): $(MAGE)
	+@$(MAGE) $(subst -,,$@)

$(COMPONENTS): $(MAGE)
	+@WHAT=$@ $(MAGE) all

# mage leaves a file beside the magefiles while it compiles them, so it is given a copy: a run that is killed, or
# two at once, cannot hurt the tree.
$(MAGE): $(SOURCES)
	+@command -v go >/dev/null || { echo >&2 "make: go is not on PATH: install Go 1.21 or newer ($(GO_PINNED) itself is fetched if needed)"; exit 1; }
	+@case "$$(GOTOOLCHAIN=local go env GOVERSION)" in go1.?|go1.?.*|go1.1?|go1.1?.*|go1.20|go1.20.*|"") \
	echo >&2 "make: the installed Go is too old: install Go 1.21 or newer ($(GO_PINNED) itself is fetched if needed)"; exit 1;; esac
	+@mkdir -p $(STATE) && copy=$$(mktemp -d $(STATE)/magefiles.XXXXXX) && trap 'rm -rf "$$copy"' EXIT && \
	cp magefiles/*.go "$$copy" && \
	env $(GO_ENV) go tool mage -d "$$copy" -w . -ldflags '-s -w' -compile "../../../$$copy/mage" && \
	mv "$$copy/mage" $@
