"""The Go rules of the components and of all that they are made of, as `go build` would compile it.

Gazelle writes these rules instead of rules_go's, in this tree and in every external repository (gazelle:map_kind).
"""

load("@io_bazel_rules_go//go:def.bzl", _go_binary = "go_binary", _go_library = "go_library")
load("//build/bazel/generated:config.bzl", "GODEBUG", "MODULES", "STAMP")

def module_of(importpath):
    """What is known of the module that a package is in.

    Args:
      importpath: of the package.

    Returns:
      A struct, or None for a package of a module that the components are not made of.
      Its field language is the Go language version in the module's own go.mod, such as "1.22". Rules_go compiles everything by
      the newest, and what some code means depends on it: before 1.22, the iterations of a loop share one variable.
      Its field metadata is the label of what binaries say of the module: its version and its sum.
    """
    for _ in range(importpath.count("/") + 1):
        if importpath in MODULES:
            module = MODULES[importpath]
            return struct(language = module.language, metadata = Label("//build/bazel/modules:" + module.name))
        importpath = importpath.rpartition("/")[0]
    return None

def go_library(name, importpath, srcs = [], gc_goopts = [], **kwargs):
    """rules_go's go_library, by the language version of its module, of its files in the order that `go build` has them in."""
    module = module_of(importpath)
    if module:
        gc_goopts = gc_goopts + ["-lang=go" + module.language]

        # Bazel 7's name for the attribute package_metadata.
        kwargs["applicable_licenses"] = [module.metadata]
    _go_library(
        name = name,
        srcs = sorted(srcs),  # buildifier puts x.go before x-y.go, and the compiler numbers what it makes in their order
        gc_goopts = gc_goopts,
        importpath = importpath,
        **kwargs
    )

def go_binary(name, x_defs = {}, **kwargs):
    """rules_go's go_binary, which says its version if --stamp is given, and has the GODEBUG of cmd/go.mod.

    Without --stamp the linker is not told of the version at all, so that the binary can be cached.
    """
    defaults = {"runtime.godebugDefault": GODEBUG} if GODEBUG else {}
    _go_binary(
        name = name,
        x_defs = STAMP | defaults | x_defs,
        **kwargs
    )
