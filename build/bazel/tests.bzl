"""What Kubernetes' tests need and no rule finds out. docs/bazel-road.md lists the tests that do not pass, and why."""

load("//build/bazel/generated:config.bzl", "MODULES", "TAGS")
load("//build/bazel/generated:tests.bzl", "TEST_MODULES")

# Tests are compiled with upstream's tags: releases leave out the functions that fill API types with random values.
TEST_TAGS = [tag for tag in TAGS if tag != "notest"]

# Upstream's `make test` has the same.
TEST_ENV = {
    "KUBE_CACHE_MUTATION_DETECTOR": "true",
    "KUBE_PANIC_WATCH_DECODE_ERROR": "true",
}

# Go files of which gazelle must not make packages. The go command does not see those in testdata either.
EXCLUDED = ["**/testdata/**/*.go"]

EXCLUDED_FROM = {
    # A package in this folder would hide its files from the package above, which embeds them.
    "k8s.io/kubectl": ["pkg/explain/v2/templates/*_test.go"],
}

# Files that tests read outside of their package's folder: by module, and by the folder of the nearest package. The readers are packages,
# with all that is below them.
FIXTURES = {
    "k8s.io/api": {
        "core/v1": struct(files = ["*.go"], readers = ["k8s.io/kubernetes/plugin/pkg/admission/priority"]),
    },
    "k8s.io/cli-runtime": {
        "": struct(files = ["artifacts/**"], readers = ["k8s.io/cli-runtime/pkg/resource"]),
    },
    "k8s.io/client-go": {
        "": struct(files = ["testdata/**"], readers = ["k8s.io/client-go/discovery/cached"]),
    },
    "k8s.io/kubectl": {
        "": struct(files = ["testdata/**"], readers = ["k8s.io/kubectl/pkg"]),
    },
    "k8s.io/kubernetes": {
        "": struct(
            files = ["api/openapi-spec/swagger.json"],
            readers = ["k8s.io/apimachinery/pkg/util/managedfields", "k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"],
        ),
        "pkg/auth/authorizer/abac": struct(files = ["*.jsonl"], readers = ["k8s.io/kubernetes/pkg/kubeapiserver/options"]),
        "test/fixtures": struct(files = ["pkg/**"], readers = ["k8s.io/kubernetes/pkg/kubectl/cmd/convert"]),
    },
}

# Tests that are no unit tests, below these folders of k8s.io/kubernetes: patterns with "..." leave them out, as upstream's `make test` does.
NOT_UNIT = ["cmd/kubeadm/test", "test/e2e", "test/e2e_dra", "test/e2e_kubeadm", "test/e2e_node", "test/integration", "third_party"]

_MODULE_OF = {module.name: path for path, module in (MODULES | TEST_MODULES).items()}

def _module_of_repository(name):
    """Returns the path of the module in a repository, whose canonical name may begin with those of a module extension."""
    return _MODULE_OF.get(name.replace("+", "~").rpartition("~")[2])

def _folder_upstream(module):
    """Returns the folder that upstream's repository has a module in, with a final slash."""
    return "" if module == "k8s.io/kubernetes" else "staging/src/%s/" % module

def _below(path, folder):
    return (path + "/").startswith(folder + "/")

def _as_upstream_impl(ctx):
    links = {}
    for file in ctx.files.srcs:
        repository, _, path = file.short_path.removeprefix("../").partition("/")
        links[_folder_upstream(_module_of_repository(repository)) + path] = file
    return DefaultInfo(runfiles = ctx.runfiles(root_symlinks = links))

_as_upstream = rule(
    doc = "Files of repositories, at run time in one folder, where upstream's repository has them.",
    implementation = _as_upstream_impl,
    attrs = {"srcs": attr.label_list(allow_files = True)},
)

def environment_of(name):
    """Returns the attributes of the test target in a package that say where it runs, and with which files.

    Args:
      name: of the target.
    """
    module = _module_of_repository(native.repository_name().lstrip("@"))
    package = native.package_name()

    # More than gazelle's testdata: all files below the package. Go files there are code, except in testdata.
    data = native.glob(["**"], exclude = ["*.go", "BUILD.bazel"], allow_empty = True)
    attributes = {}
    for path, folders in FIXTURES.items():
        for folder, fixtures in folders.items():
            if [reader for reader in fixtures.readers if _below("%s/%s" % (module, package), reader)]:
                if path == module:
                    data.append("//%s:fixtures" % folder)
                    continue
                _as_upstream(
                    name = name + "_files",
                    srcs = data + ["@%s//%s:fixtures" % ((MODULES | TEST_MODULES)[path].name, folder)],
                    testonly = True,
                )
                data = [name + "_files"]
                attributes = {"rundir": "../%s%s" % (_folder_upstream(module), package)}
    if module == "k8s.io/kubernetes" and [folder for folder in NOT_UNIT if _below(package, folder)]:
        attributes["tags"] = ["manual"]
    return attributes | {"data": data}
