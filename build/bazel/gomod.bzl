"""Repositories made from Go modules: Starlark code that is published as a module, and the Go that release.yaml pins.

Modules come from where the user's Go gets them (GOPROXY and related variables), and are checked against sums in this tree.
This file has no versions: go.mod and go.sum have those of the code, generated/config.bzl has that of Go.
"""

def _go_command(rctx):
    goroot = rctx.getenv("SLIPWAY_GOROOT")
    go = rctx.path(goroot + "/bin/go") if goroot else rctx.which("go")
    if not go or not go.exists:
        fail("go is not on PATH: install Go 1.21 or newer, or run Bazel with `slipway bazel`, which passes on the Go that it finds")
    return go

def _download(rctx, module, sum):
    """Fetches PATH@VERSION into the module cache, checks its h1 sum, and returns its folder there."""
    result = rctx.execute(
        [_go_command(rctx), "mod", "download", "-json", module],
        environment = {
            "GOFLAGS": "-mod=mod",
            "GONOSUMDB": "*",  # the sum is checked below
            "GOSUMDB": "off",
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
        },
    )
    if result.return_code:
        fail("go mod download %s: %s%s" % (module, result.stdout, result.stderr))
    info = json.decode(result.stdout)
    if info["Sum"] != sum:
        fail("%s: its sum is %s, want %s" % (module, info["Sum"], sum))
    return info["Dir"]

def _copy(rctx, src, dst, executable):
    """Copies a folder of the module cache, which is read-only and, as module zips carry no modes, not executable."""
    script = 'mkdir -p "$2" && cp -R "$1"/. "$2" && chmod -R u+w "$2" && find "$2" -type f ' + executable + " -exec chmod +x {} +"
    result = rctx.execute(["sh", "-c", script, "sh", src, dst])
    if result.return_code:
        fail("copy %s: %s" % (src, result.stderr))

def _pinned(rctx, module):
    """Reads a module's version and sum from go.mod and go.sum."""
    version = None
    for line in rctx.read(rctx.attr.go_mod).split("\n"):
        words = line.removeprefix("require ").strip().split(" ")
        if words[0] == module and "=>" not in words:
            version = words[1]
    if not version:
        fail("%s does not require %s" % (rctx.attr.go_mod, module))
    for line in rctx.read(rctx.attr.go_sum).split("\n"):
        if line.startswith("%s %s h1:" % (module, version)):
            return version, line.split(" ")[2]
    fail("%s has no sum of %s %s: run `go mod tidy`" % (rctx.attr.go_sum, module, version))

def _go_module_code_impl(rctx):
    modules = {"": rctx.attr.module} | rctx.attr.below
    for folder, module in modules.items():
        version, sum = _pinned(rctx, module)
        _copy(rctx, _download(rctx, module + "@" + version, sum), "./" + folder, "-name '*.sh'")
    for name in rctx.attr.empty:
        rctx.file(name)
    for patch in rctx.attr.patches:
        rctx.patch(patch, strip = 1)

go_module_code = repository_rule(
    doc = "The files of a Go module that the tree's go.mod requires, for the Starlark code among them.",
    implementation = _go_module_code_impl,
    attrs = {
        "below": attr.string_dict(doc = "folder to module: more modules, to put below the first one"),
        "empty": attr.string_list(doc = "files that the code expects and its modules lack"),
        "go_mod": attr.label(default = "//:go.mod"),
        "go_sum": attr.label(default = "//:go.sum"),
        "module": attr.string(mandatory = True),
        "patches": attr.label_list(),
    },
    environ = ["GOPROXY", "GOMODCACHE", "SLIPWAY_GOROOT"],
)

_OS = {"mac os x": "darwin"}
_ARCH = {"aarch64": "arm64", "x86_64": "amd64"}

def _pinned_go_impl(rctx):
    goroot = rctx.getenv("SLIPWAY_GOROOT")
    if not goroot and rctx.attr.download:
        goroot = str(rctx.path(Label(rctx.attr.download)).dirname)
    if goroot:
        for entry in rctx.path(goroot).readdir():
            if entry.basename not in ["BUILD.bazel", "REPO.bazel", "ROOT", "WORKSPACE", "version.bzl"]:
                rctx.symlink(entry, entry.basename)
    else:
        host = _OS.get(rctx.os.name, rctx.os.name) + "-" + _ARCH.get(rctx.os.arch, rctx.os.arch)
        if host not in rctx.attr.sums:
            fail("release.yaml has no sum of go%s for %s: add it under go.sums, and run `make update`" % (rctx.attr.version, host))
        module = "golang.org/toolchain@v0.0.1-go%s.%s" % (rctx.attr.version, host)
        _copy(rctx, _download(rctx, module, rctx.attr.sums[host]), ".", "'(' -path '*/bin/*' -o -path '*/pkg/tool/*' ')'")
    rctx.file("ROOT")
    rctx.file("BUILD.bazel", 'exports_files(["ROOT"])\n')

pinned_go = repository_rule(
    doc = """The Go that release.yaml pins, for this host.

SLIPWAY_GOROOT names its folder; `slipway bazel` sets it after checking that Go's sum. Otherwise it is the SDK that `download` names,
or the module golang.org/toolchain, downloaded by the Go on PATH.""",
    implementation = _pinned_go_impl,
    attrs = {
        "download": attr.string(doc = "canonical label of the file ROOT of a rules_go SDK repository; only fetched where it is needed"),
        "sums": attr.string_dict(doc = "h1 sums of golang.org/toolchain by OS-ARCH"),
        "version": attr.string(mandatory = True),
    },
    environ = ["SLIPWAY_GOROOT"],
)
