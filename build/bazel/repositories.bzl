"""Repositories of the Go modules that the components link."""

load("@bazel_gazelle//:deps.bzl", "go_repository")
load("//build/bazel:tests.bzl", "EXCLUDED", "EXCLUDED_FROM", "FIXTURES", "TEST_TAGS")
load("//build/bazel/generated:config.bzl", "MODULES", "TAGS")
load("//build/bazel/generated:tests.bzl", "TESTED", "TEST_MODULES")

_DIRECTIVES = [
    "gazelle:proto disable_global",
    "gazelle:map_kind go_binary go_binary @slipway//build/bazel:go.bzl",
    "gazelle:map_kind go_library go_library @slipway//build/bazel:go.bzl",
]

def go_modules(tree):
    """Declares a repository for each module.

    Args:
      tree: absolute path of the tree, for modules that are replaced by a folder.
    """
    for path, module in (MODULES | TEST_MODULES).items():
        if hasattr(module, "folder"):
            # Bazel watches the folder, and makes the repository again when a file in it changes.
            source = {"local_path": module.folder if module.folder.startswith("/") else tree + "/" + module.folder}
        elif hasattr(module, "version"):
            source = {"replace": getattr(module, "replace", None), "sum": module.sum, "version": module.version}
        else:
            continue  # the components' own
        packages = _with_tests(path) if path in TESTED else _without_tests(path)
        go_repository(
            name = module.name,
            importpath = path,
            # Their own BUILD files need rule sets that nothing else needs.
            build_file_generation = "clean",
            build_directives = packages.directives + [
                "gazelle:go_visibility @%s//:__subpackages__" % repo
                for repo in getattr(module, "internal_to", [])
            ],
            **(source | packages.attributes)
        )

def _without_tests(path):
    return struct(directives = _DIRECTIVES, attributes = {
        "build_config": Label("//build/bazel/generated:%s.WORKSPACE" % ("tests" if path in TEST_MODULES else "repositories")),
        # A folder with only tests would become a package, and a go:embed above it could not see its files.
        "build_extra_args": ["-exclude=**/*_test.go"],
        "build_tags": TAGS,
    })

def _with_tests(path):
    return struct(directives = _DIRECTIVES + ["gazelle:map_kind go_test go_test @slipway//build/bazel:go.bzl"], attributes = {
        "build_config": Label("//build/bazel/generated:tests.WORKSPACE"),
        "build_extra_args": ["-exclude=" + pattern for pattern in EXCLUDED + EXCLUDED_FROM.get(path, [])],
        # A library has the files for all tags that tests or the components are compiled with.
        "build_tags": TEST_TAGS,
        "patch_cmds": [
            "echo 'filegroup(name = \"fixtures\", srcs = glob(%s), visibility = [\"//visibility:public\"])' >>./%s/BUILD.bazel" %
            (json.encode(fixtures.files), folder)
            for folder, fixtures in FIXTURES.get(path, {}).items()
        ],
    })
