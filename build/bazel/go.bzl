"""Go rules that compile the components and everything that they link as `go build` does.

Gazelle writes these rules instead of rules_go's, in this tree and in every external repository (gazelle:map_kind).
"""

load("@io_bazel_rules_go//go:def.bzl", _go_binary = "go_binary", _go_library = "go_library", _go_test = "go_test")
load("//build/bazel:tests.bzl", "TEST_ENV", "TEST_TAGS", "environment_of")
load("//build/bazel/generated:config.bzl", "GODEBUG", "MODULES", "STAMP")
load("//build/bazel/generated:tests.bzl", "TEST_MODULES")

_ALL_MODULES = MODULES | TEST_MODULES

def module_of(importpath):
    """Returns the attributes of the module that contains a package.

    Args:
      importpath: of the package.

    Returns:
      A struct, or None if the components link nothing of the module.
      Its field language is the Go language version in the module's own go.mod, such as "1.22". Rules_go compiles everything in
      the newest language, and the meaning of code depends on that: before 1.22, the iterations of a loop share one variable.
      Its field metadata is the label of the module's version and sum, for the build information of binaries.
      Its field folder is what `go build -trimpath` has in file names for the package's folder: k8s.io/api@v0.37.1/core/v1.
    """
    path = importpath
    for _ in range(importpath.count("/") + 1):
        if importpath in _ALL_MODULES:
            module = _ALL_MODULES[importpath]
            return struct(
                folder = _at_version(importpath, module) + path.removeprefix(importpath),
                language = module.language,
                metadata = Label("//build/bazel/modules:" + module.name),
            )
        importpath = importpath.rpartition("/")[0]
    return None

def _at_version(path, module):
    version = getattr(module, "required", getattr(module, "version", None))
    return path + "@" + version if version else path  # the components' own has none

def package_url(path, module):
    """Returns what rules_go reads for the build information of binaries.

    Args:
      path: of the module.
      module: a value of MODULES.

    Returns:
      A package URL. The qualifiers are the sum, what replaces the module, and the version of Go in its go.mod: the build ID of a
      program depends on that of its main package. A rules_go that is not patched reads the first one only.
    """
    qualifiers = {
        "checksum": getattr(module, "sum", ""),
        "go": getattr(module, "go", module.language),
        "replace": getattr(module, "replaced", ""),
    }
    for character, escaped in {"%": "%25", "+": "%2B", "/": "%2F", ":": "%3A", "=": "%3D", "@": "%40", "&": "%26", "#": "%23", "?": "%3F", " ": "%20", ";": "%3B"}.items():
        qualifiers = {name: value.replace(character, escaped) for name, value in qualifiers.items()}
    return "pkg:golang/%s?%s" % (_at_version(path, module), "&".join([name + "=" + value for name, value in qualifiers.items() if value]))

def go_library(name, importpath, srcs = [], gc_goopts = [], **kwargs):
    """rules_go's go_library, in the language version of its module, with the names and the order of files of `go build`."""
    module = module_of(importpath)
    if module:
        here = native.package_relative_label(":" + name)
        folder = "/".join([part for part in [here.workspace_root, here.package] if part])
        gc_goopts = gc_goopts + [
            "-lang=go" + module.language,
            "-trimpath=%s=>%s" % (folder, module.folder),  # rules_go makes it absolute
        ]

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
        x_defs = defaults | STAMP | x_defs,  # in the order of `go build`, which its build ID depends on
        applicable_licenses = [],  # the module is that of the embedded library
        **kwargs
    )

def go_test(name, data = [], **kwargs):
    """rules_go's go_test of a package of Kubernetes, as upstream tests it: see tests.bzl, which has more data than gazelle finds."""
    _go_test(
        name = name,
        env = TEST_ENV,
        gotags = TEST_TAGS,
        **(kwargs | environment_of(name))
    )
