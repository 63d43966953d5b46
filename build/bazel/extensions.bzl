"""Module extensions for MODULE.bazel.

The components' Go modules are declared here and not by gazelle's go_deps: that extension selects one version for all of Bazel's
module graph, so requirements of rules_go and gazelle themselves would raise versions in the components.
"""

load("//build/bazel:gomod.bzl", "pinned_go")
load("//build/bazel:packer.bzl", "release_repositories")
load("//build/bazel:repositories.bzl", "go_modules")
load("//build/bazel:tree.bzl", "tree_of")
load("//build/bazel/generated:config.bzl", "GO_SUMS", "GO_VERSION")

def _components_impl(mctx):
    go_modules(str(tree_of(mctx)))

components = module_extension(
    doc = "One repository for each Go module that cmd/go.mod requires.",
    implementation = _components_impl,
)

def _toolchain_impl(_):
    pinned_go(
        name = "pinned_go",
        download = str(Label("@go_download//:ROOT")),
        sums = GO_SUMS,
        version = GO_VERSION,
    )

toolchain = module_extension(
    doc = "The Go that release.yaml pins.",
    implementation = _toolchain_impl,
)

def _packing_impl(_):
    release_repositories()

packing = module_extension(
    doc = "Repositories for packing a release.",
    implementation = _packing_impl,
)
