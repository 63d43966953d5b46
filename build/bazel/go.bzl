"""Go rules that compile the components and everything that they link as `go build` does.

Gazelle writes these rules instead of rules_go's, in this tree and in every external repository (gazelle:map_kind).
"""

load("@io_bazel_rules_go//go:def.bzl", _go_binary = "go_binary", _go_library = "go_library")
load("//build/bazel/generated:config.bzl", "GODEBUG", "MODULES", "STAMP")

def module_of(importpath):
    """Returns the attributes of the module that contains a package.

    Args:
      importpath: of the package.

    Returns:
      A struct, or None if the components link nothing of the module.
      Its field language is the Go language version in the module's own go.mod, such as "1.22". Rules_go compiles everything in
      the newest language, and the meaning of code depends on that: before 1.22, the iterations of a loop share one variable.
      Its field metadata is the label of the module's version and sum, for the build information of binaries.
    """
    for _ in range(importpath.count("/") + 1):
        if importpath in MODULES:
            module = MODULES[importpath]
            return struct(language = module.language, metadata = Label("//build/bazel/modules:" + module.name))
        importpath = importpath.rpartition("/")[0]
    return None

def go_library(name, importpath, srcs = [], gc_goopts = [], **kwargs):
    """rules_go's go_library, in the language version of its module, with files in the order of `go build`."""
    module = module_of(importpath)
    if module:
        gc_goopts = gc_goopts + ["-lang=go" + module.language]

        # Bazel 7's name for the attribute package_metadata.
        kwargs["applicable_licenses"] = [module.metadata]
    _go_library(
        name = name,
        srcs = sorted(srcs),  # buildifier puts x.go before x-y.go, and the compiler numbers symbols in the files' order
        gc_goopts = gc_goopts,
        importpath = importpath,
        **kwargs
    )

def go_binary(name, x_defs = {}, **kwargs):
    """rules_go's go_binary with the GODEBUG of cmd/go.mod, and with --stamp the version.

    Without --stamp, the version is not an input of the link, so that the binary can be cached.
    """
    defaults = {"runtime.godebugDefault": GODEBUG} if GODEBUG else {}
    _go_binary(
        name = name,
        x_defs = STAMP | defaults | x_defs,
        **kwargs
    )
