# What make does in a tree. Every target runs the mage target of the same name: slipway's, and those of magefiles/. These are compiled
# into _output/.slipway/mage, again whenever their sources change. `make help` lists them.
#
# This file is slipway's: a distribution has a copy, which `slipway bump slipway` replaces. It needs GNU make. No path is absolute, so
# the tree's path may have spaces.

.DEFAULT_GOAL := all

# Make's options that are single letters. `make -n` prints a plan. With -q and -t, and where -p prints the rules, nothing runs at all.
LETTERS := $(filter-out -%,$(firstword $(MAKEFLAGS)))
DRY     := $(findstring n,$(LETTERS))
NOTHING := $(findstring q,$(LETTERS))$(findstring t,$(LETTERS))$(and $(DRY),$(findstring p,$(LETTERS)))

MAKEFLAGS += --no-print-directory --no-builtin-rules

# Some variables, and functions that bash exports, change what the lines below mean to a shell. The commands that they run do not get them.
unexport BASHOPTS BASH_ENV CDPATH ENV GLOBIGNORE GREP_OPTIONS POSIXLY_CORRECT SHELLOPTS $(filter BASH_FUNC_%,$(.VARIABLES))

# quote quotes a word for a shell, whatever it holds.
quote = '$(subst ','\'',$(1))'

STATE := _output/.slipway
MAGE  := $(STATE)/mage

# The toolchain is compiled by the Go that release.yaml pins and with the components' flags, so that both share
# one compiled standard library in the Go cache.
GO_ENV    := GOENV=off GOTOOLCHAIN=$(GO_PINNED) GOFLAGS=-trimpath\ -buildvcs=false GOWORK=off CGO_ENABLED=0 \
             GOOS= GOARCH= GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= GODEBUG=

# Inputs that were unpacked with the tree from kubernetes-inputs.tar, or that SLIPWAY_INPUTS names, replace the network: see
# docs/sources.md. A folder's name may have characters that an address may not.
EMPTY :=
SPACE := $(EMPTY) $(EMPTY)
COMMA := ,
HASH  := \#
url    = $(subst |,%7C,$(subst ?,%3F,$(subst $(HASH),%23,$(subst $(COMMA),%2C,$(subst $(SPACE),%20,$(subst %,%25,$(1)))))))
NAMED  := $(if $(filter environment,$(origin SLIPWAY_INPUTS)),$(value SLIPWAY_INPUTS),$(SLIPWAY_INPUTS))
INPUTS := $(if $(NAMED),$(if $(filter-out off,$(NAMED)),$(NAMED)),$(patsubst %/go,%,$(wildcard _inputs/go)))
ifneq ($(INPUTS),)
ifeq ($(shell test -d $(call quote,$(INPUTS)/go) && echo yes),)
$(error SLIPWAY_INPUTS=$(NAMED): want the folder _inputs of an unpacked kubernetes-inputs.tar, or off)
endif
export GOPROXY    := file://$(call url,$(if $(filter /%,$(subst $(SPACE),,$(INPUTS))),,$(CURDIR)/)$(INPUTS)/go)
export GOSUMDB    := off
export GONOSUMDB  := none
export GONOPROXY  := none
export GOTOOLCHAIN := $(GO_PINNED)
endif

# GOENV=off ignores the user's go/env file, which may set some of GO_SETTINGS, so read these first.
HANDED_ON := settings=$$(GOTOOLCHAIN=local GOFLAGS= go env | sed -nE \
 's/^($(subst $(SPACE),|,$(strip $(GO_SETTINGS))))=/export &/p') && eval "$$settings"

# The folder of slipway's own sources, if go.mod names no version of it.
SLIPWAY := $(if $(wildcard pkg/cli/targets),.,$(shell sed -nE 's|^replace $(TOOLCHAIN) => ([./].*)|\1|p' go.mod))
SOURCES := $(if $(SLIPWAY),$(foreach name,go.mod go.sum pkg build/bazel,$(call quote,$(SLIPWAY)/$(name))))

# The compiled targets are those of these sources, whose checksum is kept beside them. Times would not show that a source was deleted, or
# replaced by a copy with an old time (rsync, cp -p, tar).
ifeq ($(NOTHING),)
SUMS := $(shell find build/targets.mk build/slipway.mk go.mod go.sum Makefile magefiles $(SOURCES) -type d -name testdata -prune -o \
  ! -type d ! -name '*_test.go' -exec cksum {} + 2>/dev/null | LC_ALL=C sort | cksum; read -r was 2>/dev/null <$(STATE)/mage.sum && echo "$$was")
SUM  := $(wordlist 1,2,$(SUMS))
ifneq ($(SUM),$(wordlist 3,4,$(SUMS)))
.PHONY: $(MAGE)
endif
endif

# Any other goal may be a component that COMPONENTS does not have yet: mage looks it up in the catalog, or suggests similar
# names. Goals such as .DEFAULT come from shells that complete the names of targets.
COMPONENTS += $(filter-out .% %.go go.mod go.sum $(MAGE) $(MAKEFILE_LIST) $(TARGETS) $(COMPONENTS),$(MAKECMDGOALS))

.PHONY: $(TARGETS) $(COMPONENTS)

ifneq ($(NOTHING),)
$(TARGETS) $(COMPONENTS):
	@:
else

# PRINT_HELP=y prints what a target does instead.
help_or = $(if $(filter y,$(PRINT_HELP)),WHAT=$(call quote,$@) $(MAGE) help,$(1))

# The + runs mage under `make -n`, too: it then prints the plan and does nothing. `make help` needs no plan.
$(filter-out slipway $(if $(DRY),help),$(TARGETS)): $(MAGE)
	+@$(call help_or,$(MAGE) $(subst _,,$(subst -,,$@)))

ifneq ($(DRY),)
help:
	$(MAGE) help
endif

$(COMPONENTS): $(MAGE)
	+@$(call help_or,$(MAGE) component $(call quote,$@))

# The program with the targets links no analyzers.
lint: $(if $(filter y,$(PRINT_HELP)),,slipway)

# The packer of releases is compiled in the same environment as the mage targets.
slipway: $(MAGE)
	+@$(call help_or,$(HANDED_ON) && env $(GO_ENV) $(MAGE) slipway)

# Where slipway is installed, the compiled targets may come from a shared cache. While mage compiles the magefiles, it keeps a file
# beside them. It gets a copy of them, so that killed or concurrent runs leave the tree as it is.
$(MAGE):
	+@mkdir -p $(STATE) && said=$$(slipway cache targets 2>&1); \
	if [ "$$said" = $@ ]; then echo '$(SUM)' >$(STATE)/mage.sum; exit; fi; \
	{ command -v go >/dev/null || { ! command -v slipway >/dev/null || echo >&2 "$$said"; echo >&2 "make: go is not on PATH: install Go 1.21 or newer ($(GO_PINNED) itself is fetched if needed)"; exit 1; }; } && \
	case "$$(GOTOOLCHAIN=local go env GOVERSION)" in go1.?|go1.?.*|go1.1?|go1.1?.*|go1.20|go1.20.*|"") \
	echo >&2 "make: the installed Go is too old: install Go 1.21 or newer ($(GO_PINNED) itself is fetched if needed)"; exit 1;; esac && \
	$(if $(DRY),echo >&2 "make: compiling the targets into $@: they print the plan" &&) \
	copy=$$(mktemp -d $(STATE)/magefiles.XXXXXX) && trap 'rm -rf "$$copy"' EXIT && \
	cp magefiles/*.go "$$copy" && $(HANDED_ON) && \
	env $(GO_ENV) go tool mage -d "$$copy" -w . -ldflags '-s -w' -compile "../../../$$copy/mage" && \
	rm -f $@.cached && mv "$$copy/mage" $@ && echo '$(SUM)' >$(STATE)/mage.sum
endif
