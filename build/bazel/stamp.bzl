"""The stamp of --config=release, without values that differ between machines and between edits.

Bazel's own file of stable keys names the user and the host, and ours adds a sum of the sources. A binary with that file as an input
would be linked again on another machine, or after an edit to a file that it does not depend on.
"""

def _workspace_status_impl(ctx):
    status = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.run_shell(
        command = "LC_ALL=C sed -n '%s' \"$1\" >\"$2\"" % ctx.attr.lines,
        arguments = [ctx.info_file.path, status.path],
        inputs = [ctx.info_file],
        outputs = [status],
        mnemonic = "WorkspaceStatus",
        progress_message = "Reading which version this is",
    )
    return DefaultInfo(files = depset([status]))

workspace_status = rule(
    doc = "Lines of Bazel's file of stable keys.",
    implementation = _workspace_status_impl,
    attrs = {"lines": attr.string(mandatory = True, doc = "a script for sed -n that prints them")},
)
