"""Repositories for packing a release: the packer, and what decides the parts of it that are made in the tree.

The pinned Go makes them from this tree's sources. The toolchain's modules are not repositories, so they cannot raise versions of the
components' modules.
"""

load("//build/bazel:tree.bzl", "tree_of")
load("//build/bazel/generated:config.bzl", "FOLDERS", "GO_OWN", "GO_SETTINGS")

# Sources of what is made in the tree: files, and folders with all that is in them.
SOURCES = {
    "licenses": ["build/bazel/generated/config.bzl", "cmd", "patches", "release/release.yaml"] + FOLDERS,
    "third_party": ["LICENSE", "images", "release/release.yaml"] + FOLDERS,
}

_CONSTRUCTED = {
    "CGO_ENABLED": "0",
    "GO111MODULE": "on",
    "GOAMD64": "v1",
    "GOARCH": "",
    "GOARM64": "v8.0",
    "GODEBUG": "",
    "GOENV": "off",
    "GOEXPERIMENT": "",
    "GOFIPS140": "off",
    "GOFLAGS": "",
    "GOOS": "",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
}

def _execute(rctx, what, command, environment, directory = ""):
    result = rctx.execute(command, environment = environment, working_directory = directory, timeout = 7200)
    if result.return_code:
        fail("%s: %s%s" % (what, result.stdout, result.stderr))
    return result.stdout

def _environment(rctx, go):
    """Returns the user's environment for Go, with the pinned Go on PATH."""
    settings = _execute(rctx, "go env", [go, "env", "-json"] + GO_SETTINGS, {"GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"})
    handed_on = {key: value for key, value in json.decode(settings).items() if value}
    path = "%s:%s" % (go.dirname, rctx.getenv("PATH", ""))
    return _CONSTRUCTED | handed_on | {"GOROOT": "", "PATH": path}

def _pinned_go_command(rctx):
    return rctx.path(rctx.attr.go_root).dirname.get_child("bin").get_child("go").realpath

def _release_packer_impl(rctx):
    tree = rctx.workspace_root
    rctx.file("BUILD.bazel", 'exports_files(["packer"])\n')
    given = tree.get_child("packer")  # slipway, which makes a workspace for a tree without its sources
    if given.exists:
        rctx.watch(given)
        rctx.symlink(given, "packer")
        return
    for folder in ["pkg", "build/bazel/packer"]:
        rctx.watch_tree(tree.get_child(folder))
    for file in [rctx.attr.go_mod, rctx.attr.go_sum]:
        rctx.watch(file)
    go = _pinned_go_command(rctx)
    rctx.report_progress("compiling the packer")
    _execute(
        rctx,
        "compile the packer",
        [go, "build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags=-s -w", "-o", rctx.path("packer"), "./build/bazel/packer"],
        # Slipway may need a newer Go than the components. Then Go switches to it, as it does for make.
        _environment(rctx, go) | {"GOTOOLCHAIN": GO_OWN},
        str(tree),
    )

release_packer = repository_rule(
    doc = "The packer, compiled unless the workspace has it. It is compiled again when its sources change.",
    implementation = _release_packer_impl,
    attrs = {
        "go_mod": attr.label(default = "//:go.mod"),
        "go_root": attr.label(default = "@pinned_go//:ROOT"),
        "go_sum": attr.label(default = "//:go.sum"),
    },
    environ = ["GOPROXY", "GOMODCACHE", "SLIPWAY_GOROOT"],
)

def _release_sources_impl(rctx):
    tree = tree_of(rctx)
    for folder in ["cmd", "images"] + FOLDERS:
        rctx.watch_tree(tree.get_child(folder))

    # Patches are not watched: Bazel does not recover when a watched folder is removed. The configuration changes with every patch.
    for file in [rctx.attr.catalog, rctx.attr.config, tree.get_child("LICENSE")]:
        rctx.watch(file)
    go = _pinned_go_command(rctx)
    environment = _environment(rctx, go)
    settings = _execute(rctx, "go env", [go, "env", "GOENV"], environment | {"GOENV": rctx.getenv("GOENV", "")}).strip()
    if settings.startswith("/"):
        rctx.watch(settings)
    for part, names in SOURCES.items():
        _execute(
            rctx,
            "read the sources of " + part,
            [rctx.path(rctx.attr.packer), "digests", "-tree", tree, "-to", rctx.path(part)] + names,
            environment,
        )

    # No target exports this file, so it is in no action's key. It may hold passwords.
    rctx.file("environment.json", json.encode({
        name: rctx.getenv(name)
        for name in _MACHINE_VARIABLES
        if rctx.getenv(name)
    } | environment), executable = False)
    _execute(rctx, "chmod", ["chmod", "600", rctx.path("environment.json")], {})
    rctx.file("BUILD.bazel", "exports_files(%r)\n" % SOURCES.keys())

# The variables, besides those of Go, that decide how a program on this machine reaches files and networks. None decides what is made.
_MACHINE_VARIABLES = [
    "HOME",
    "USER",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "LD_LIBRARY_PATH",
    "ALL_PROXY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "NETRC",
    "SSH_AUTH_SOCK",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_GLOBAL",
    "GIT_ASKPASS",
    "SLIPWAY_DEBIAN_MIRROR",
    "SLIPWAY_DEBIAN_SECURITY_MIRROR",
    "SLIPWAY_DEBIAN_SNAPSHOT",
]

release_sources = repository_rule(
    doc = "What decides the parts of a release that are made in the tree: the digests of their sources, and this machine's settings of Go.",
    implementation = _release_sources_impl,
    attrs = {
        "catalog": attr.label(default = "//release:release.yaml"),
        "config": attr.label(default = "//build/bazel/generated:config.bzl"),
        "go_root": attr.label(default = "@pinned_go//:ROOT"),
        "packer": attr.label(default = "@release_packer//:packer"),
    },
    environ = ["GOENV", "PATH", "SLIPWAY_GOROOT"] + GO_SETTINGS + _MACHINE_VARIABLES,
)

def release_repositories():
    """Declares the repositories."""
    release_packer(name = "release_packer")
    release_sources(name = "release_sources")
