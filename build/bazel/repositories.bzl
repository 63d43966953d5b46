"""Repositories of the Go modules that the components link."""

load("@bazel_gazelle//:deps.bzl", "go_repository")
load("//build/bazel/generated:config.bzl", "MODULES", "TAGS")

_DIRECTIVES = [
    "gazelle:proto disable_global",
    "gazelle:map_kind go_binary go_binary @slipway//build/bazel:go.bzl",
    "gazelle:map_kind go_library go_library @slipway//build/bazel:go.bzl",
]

def _tree_path_impl(rctx):
    rctx.file("BUILD.bazel")
    rctx.file("path.bzl", "TREE = %r\n" % str(rctx.workspace_root))

tree_path = repository_rule(
    doc = "The absolute path of this tree, for WORKSPACE, where no rule knows it.",
    implementation = _tree_path_impl,
    local = True,
)

def go_modules(tree):
    """Declares a repository for each module.

    Args:
      tree: absolute path of this tree, for modules that are replaced by a folder.
    """
    for path, module in MODULES.items():
        if hasattr(module, "folder"):
            # Bazel watches the folder, and makes the repository again when a file in it changes.
            source = {"local_path": module.folder if module.folder.startswith("/") else tree + "/" + module.folder}
        elif hasattr(module, "version"):
            source = {"replace": getattr(module, "replace", None), "sum": module.sum, "version": module.version}
        else:
            continue  # the components' own
        go_repository(
            name = module.name,
            importpath = path,
            build_config = Label("//build/bazel/generated:repositories.WORKSPACE"),
            # Their own BUILD files need rule sets that nothing else needs.
            build_file_generation = "clean",
            build_directives = _DIRECTIVES + [
                "gazelle:go_visibility @%s//:__subpackages__" % repo
                for repo in getattr(module, "internal_to", [])
            ],
            # A folder with only tests would become a package, and a go:embed above it could not see its files.
            build_extra_args = ["-exclude=**/*_test.go"],
            build_tags = TAGS,
            **source
        )
