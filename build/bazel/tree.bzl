"""Where the tree is. Bazel's workspace is the tree itself, or a folder below it with links to the tree's files, which slipway makes."""

def tree_of(ctx):
    """Returns the path of the tree.

    Args:
      ctx: of a repository rule or of a module extension.
    """
    return ctx.path(Label("//release:release.yaml")).realpath.dirname.dirname

def _tree_path_impl(rctx):
    rctx.file("BUILD.bazel")
    rctx.file("path.bzl", "TREE = %r\n" % str(tree_of(rctx)))

tree_path = repository_rule(
    doc = "The absolute path of the tree, for WORKSPACE, where no rule knows it.",
    implementation = _tree_path_impl,
    local = True,
)
