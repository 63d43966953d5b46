"""Stand-in for the rule of this name, where the module package_metadata is not available: Debian has no package of it.

It has what gazelle's go_repository and rules_go need: the package URL, from which rules_go makes the list of modules in a binary's
build information.
"""

load("//providers:package_metadata_info.bzl", "PackageMetadataInfo")

def _package_metadata_impl(ctx):
    out = ctx.actions.declare_file(ctx.attr.name + ".package-metadata.json")
    ctx.actions.write(out, json.encode({"attributes": {}, "label": str(ctx.label), "purl": ctx.attr.purl}))
    return [
        DefaultInfo(files = depset([out])),
        PackageMetadataInfo(files = depset([out]), metadata = out),
    ]

_package_metadata = rule(
    implementation = _package_metadata_impl,
    attrs = {"purl": attr.string(mandatory = True)},
    provides = [PackageMetadataInfo],
)

def package_metadata(name, purl, visibility = None, **_):
    """Declares which package the targets of a repository come from."""
    _package_metadata(
        name = name,
        # Not of itself: that would be a cycle.
        applicable_licenses = [],
        purl = purl,
        visibility = visibility,
    )
