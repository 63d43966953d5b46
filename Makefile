# The front door: `make help` lists the targets. They are slipway's (build/slipway.mk) and those of magefiles/.

# GO_PINNED, GO_SETTINGS, TOOLCHAIN, TARGETS and COMPONENTS, which `make update` writes.
include build/targets.mk

include build/slipway.mk
