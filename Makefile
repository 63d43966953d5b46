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
GO_PINNED := $(firstword $(shell sed -nE 's/^  version:[^a-z]*(go[0-9]+[0-9a-z.]*).*$$/\1/p' release/release.yaml))
ifeq ($(GO_PINNED),)
$(error release/release.yaml: no line "  version: go1.26.8", below "go:")
endif
GO_ENV    := GOENV=off GOTOOLCHAIN=$(GO_PINNED) GOFLAGS=-trimpath\ -buildvcs=false GOWORK=off CGO_ENABLED=0 \
             GOOS= GOARCH= GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= GODEBUG=

# What the user's go/env file says of where modules come from; GOENV=off keeps out the rest of it.
HANDED_ON := settings=$$(GOTOOLCHAIN=local GOFLAGS= go env | sed -nE \
 's/^(GOPROXY|GOSUMDB|GONOSUMDB|GOPRIVATE|GONOPROXY|GOINSECURE|GOAUTH|GOVCS|GOCACHE|GOMODCACHE|GOPATH)=/export &/p') && eval "$$settings"

SOURCES := go.mod go.sum Makefile $(wildcard magefiles/*.go pkg/*/*.go pkg/*/*/*.go pkg/*/*/*/*.go)

# A deleted source, or one that came with an old time (rsync, cp -p, tar), does not count for make: a checksum tells.
SUM := $(shell { echo $(GO_PINNED); cksum go.mod go.sum Makefile; find magefiles pkg -name '*.go' -exec cksum {} +; } 2>/dev/null | sort 2>/dev/null | cksum 2>/dev/null)
ifneq ($(SUM),$(shell cat $(STATE)/mage.sum 2>/dev/null || echo '$(SUM)'))
.PHONY: $(MAGE)
endif

TARGETS := all cross release quick-release release-images quick-release-images package-tarballs \
           test test-integration bench soak update update-debian-locks verify clean help slipway \
           shell release-in-a-container \
           cluster-up cluster-down cluster-verify conformance \
           bazel-build bazel-release bazel-test bazel-test-integration

.PHONY: $(TARGETS)

# `make kubectl` is `make WHAT=kubectl`, for every component of the catalog.
COMPONENTS := $(shell sed -nE 's/^- *\{ *name: *"?([A-Za-z0-9._-]+)"? *, *(package|test):.*$$/\1/p' release/release.yaml)
ifeq ($(COMPONENTS),)
$(error release/release.yaml: no line "- {name: kubectl, package: ./kubectl", below "binaries:")
endif
.PHONY: $(COMPONENTS)

# The + makes `make -n` hand over as well: mage then prints the plan and does nothing.
$(filter-out slipway,$(TARGETS)): $(MAGE)
	+@$(MAGE) $(subst -,,$@)

$(COMPONENTS): $(MAGE)
	+@WHAT=$@ $(MAGE) all

# What packs releases is compiled as the mage targets are.
slipway: $(MAGE)
	+@$(HANDED_ON) && env $(GO_ENV) $(MAGE) slipway

# mage leaves a file beside the magefiles while it compiles them, so it is given a copy: a run that is killed, or
# two at once, cannot hurt the tree.
$(MAGE): $(SOURCES)
	+@command -v go >/dev/null || { echo >&2 "make: go is not on PATH: install Go 1.21 or newer ($(GO_PINNED) itself is fetched if needed)"; exit 1; }
	+@case "$$(GOTOOLCHAIN=local go env GOVERSION)" in go1.?|go1.?.*|go1.1?|go1.1?.*|go1.20|go1.20.*|"") \
	echo >&2 "make: the installed Go is too old: install Go 1.21 or newer ($(GO_PINNED) itself is fetched if needed)"; exit 1;; esac
	+@mkdir -p $(STATE) && copy=$$(mktemp -d $(STATE)/magefiles.XXXXXX) && trap 'rm -rf "$$copy"' EXIT && \
	cp magefiles/*.go "$$copy" && $(HANDED_ON) && \
	env $(GO_ENV) go tool mage -d "$$copy" -w . -ldflags '-s -w' -compile "../../../$$copy/mage" && \
	mv "$$copy/mage" $@ && echo '$(SUM)' >$(STATE)/mage.sum
