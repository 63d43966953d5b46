"""Repositories of the Go modules that the components link."""

load("@bazel_gazelle//:deps.bzl", "go_repository")
load("//build/bazel/generated:config.bzl", "MODULES", "TAGS")

_DIRECTIVES = [
    "gazelle:proto disable_global",
    "gazelle:map_kind go_binary go_binary @slipway//build/bazel:go.bzl",
    "gazelle:map_kind go_library go_library @slipway//build/bazel:go.bzl",
]

def _replaced_by_folder_impl(rctx):
    fail(("cmd/go.mod replaces %s with the folder %s, but Bazel gets modules by version and sum: " +
          "use another road, or replace it with a module of your own") % (rctx.attr.module, rctx.attr.folder))

_replaced_by_folder = repository_rule(
    doc = "A repository that fails with an explanation.",
    implementation = _replaced_by_folder_impl,
    attrs = {"folder": attr.string(), "module": attr.string()},
)

def go_modules():
    """Declares a repository for each module."""
    for path, module in MODULES.items():
        if hasattr(module, "folder"):
            _replaced_by_folder(name = module.name, module = path, folder = module.folder)
            continue
        if not hasattr(module, "version"):
            continue  # the components' own
        go_repository(
            name = module.name,
            importpath = path,
            replace = getattr(module, "replace", None),
            sum = module.sum,
            version = module.version,
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
        )
