"""The tarballs of a release, packed from binaries that Bazel has compiled and from the third-party parts."""

load("//build/bazel:packer.bzl", "SOURCES")
load("//build/bazel/generated:release.bzl", "RELEASES")

def _in_tree(ctx, subcommand, mnemonic, what, **kwargs):
    """Runs the packer in the tree, with the user's Go and network, for a tar file.

    The digests of the sources stand for the tree: the action runs again when they change, and fails if the tree has other sources by then. Its
    result can come from a cache.
    """
    made = ctx.actions.declare_file(ctx.label.name + ".tar")
    args = ctx.actions.args()
    args.add(subcommand)
    args.add("-tree", ctx.file._catalog)
    args.add("-environment", ctx.file._sources.dirname + "/environment.json")
    args.add("-platform", ctx.attr.platform)
    args.add("-digests", ctx.file._sources)
    args.add("-to", made)
    args.add_all(SOURCES[subcommand])
    ctx.actions.run(
        executable = ctx.file._packer,
        arguments = [args],
        inputs = [ctx.file._catalog, ctx.file._sources],
        outputs = [made],
        execution_requirements = {"no-remote-exec": "1", "no-sandbox": "1", "requires-network": "1"},
        mnemonic = mnemonic,
        progress_message = what + " for " + ctx.attr.platform,
        **kwargs
    )
    return DefaultInfo(files = depset([made]))

def _in_tree_attrs(subcommand):
    return {
        "platform": attr.string(mandatory = True),
        "_catalog": attr.label(default = "//release:release.yaml", allow_single_file = True),
        "_packer": attr.label(default = "@release_packer//:packer", allow_single_file = True, cfg = "exec"),
        "_sources": attr.label(default = "@release_sources//:" + subcommand, allow_single_file = True),
    }

def _release_licenses_impl(ctx):
    return _in_tree(ctx, "licenses", "ReleaseLicenses", "Gathering licenses")

_release_licenses = rule(
    implementation = _release_licenses_impl,
    attrs = _in_tree_attrs("licenses"),
)

def _release_third_party_impl(ctx):
    # As Bazel packages, other projects would affect the selection of the components' modules: they have modules of their own.
    return _in_tree(ctx, "third_party", "ReleaseThirdParty", "Making the third-party parts", resource_set = _whole_machine)

_release_third_party = rule(
    implementation = _release_third_party_impl,
    attrs = _in_tree_attrs("third_party"),
)

def _release_tars_impl(ctx):
    if not ctx.attr.stamped:
        fail("//%s:%s: a release needs a version: build it with --config=release" % (ctx.label.package, ctx.label.name))
    sources = ctx.actions.declare_file(ctx.label.name + "-sources/kubernetes-src.tar.gz")

    # This runs in the tree, because git knows which files are sources. It runs again when the status names other sources. Its result
    # can come from a cache.
    args = ctx.actions.args()
    args.add("sources")
    args.add("-tree", ctx.file._catalog)
    args.add("-status", ctx.file._status)
    args.add("-to", sources)
    ctx.actions.run(
        executable = ctx.file._packer,
        arguments = [args],
        inputs = [ctx.file._catalog, ctx.file._status],
        outputs = [sources],
        execution_requirements = {"no-remote-exec": "1", "no-sandbox": "1"},
        use_default_shell_env = True,
        mnemonic = "ReleaseSources",
        progress_message = "Packing the sources",
    )

    tars = [ctx.actions.declare_file(ctx.label.name + "/" + name) for name in ctx.attr.tars]
    args = ctx.actions.args()
    args.add("release")
    args.add("-platform", ctx.attr.platform)
    args.add("-sources", sources)
    args.add("-status", ctx.file._status)
    args.add("-licenses", ctx.file.licenses)
    args.add("-third_party", ctx.file.third_party)
    binaries = []
    for target, label in ctx.attr.binaries.items():
        args.add("-binary", target[DefaultInfo].files_to_run.executable, format = label + "=%s")
        binaries.append(target[DefaultInfo].files_to_run.executable)
    args.add("-to", tars[0].dirname)
    args.add_all(ctx.attr.tars)
    ctx.actions.run(
        executable = ctx.file._packer,
        arguments = [args],
        inputs = [sources, ctx.file._status, ctx.file.licenses, ctx.file.third_party] + binaries,
        outputs = tars,
        resource_set = _whole_machine,
        mnemonic = "Release",
        progress_message = "Packing the release for " + ctx.attr.platform,
    )
    return DefaultInfo(files = depset(tars))

def _whole_machine(_os, _inputs):
    # The action compresses on all processors. An action that requests more than the machine has runs alone.
    return {"cpu": 64, "memory": 2048}

_release_tars = rule(
    implementation = _release_tars_impl,
    attrs = {
        "binaries": attr.label_keyed_string_dict(mandatory = True, doc = "each with its label as the packer knows it"),
        "licenses": attr.label(mandatory = True, allow_single_file = True),
        "third_party": attr.label(mandatory = True, allow_single_file = True),
        "platform": attr.string(mandatory = True),
        "stamped": attr.bool(mandatory = True, doc = "whether --stamp is given"),
        "tars": attr.string_list(mandatory = True, doc = "names of all files of the release"),
        "_catalog": attr.label(default = "//release:release.yaml", allow_single_file = True),
        "_packer": attr.label(default = "@release_packer//:packer", allow_single_file = True, cfg = "exec"),
        "_status": attr.label(default = "//build/bazel:status", allow_single_file = True),
    },
)

def _by_platform(of):
    return select(
        {"@io_bazel_rules_go//go/platform:" + platform.replace("/", "_"): of(platform) for platform in RELEASES},
        no_match_error = "no release has a server for this platform: add --platforms=//build/bazel/platforms:linux_amd64",
    )

def _platform():
    return _by_platform(lambda platform: platform)

def release_licenses(name, **kwargs):
    """The license files of all modules that the components of a release for the target platform link.

    Args:
      name: of the target, and of the tar file.
      **kwargs: common attributes of rules.
    """
    _release_licenses(name = name, platform = _platform(), tags = ["manual"], **kwargs)

def release_third_party(name, **kwargs):
    """The parts of other projects in a release for the target platform: programs, licenses, files of Debian packages.

    Args:
      name: of the target, and of the tar file.
      **kwargs: common attributes of rules.
    """
    _release_third_party(name = name, platform = _platform(), tags = ["manual"], **kwargs)

def release_tars(name, licenses, third_party, **kwargs):
    """The files of a release for the target platform, as release.yaml declares them.

    Args:
      name: of the target, and of the folder with the files.
      licenses: a target of release_licenses.
      third_party: a target of release_third_party.
      **kwargs: common attributes of rules.
    """
    _release_tars(
        name = name,
        binaries = _by_platform(lambda platform: {label: label for label in RELEASES[platform].binaries}),
        licenses = licenses,
        third_party = third_party,
        platform = _platform(),
        stamped = select({
            "//build/bazel:stamped": True,
            "//conditions:default": False,
        }),
        tars = _by_platform(lambda platform: RELEASES[platform].tars),
        # //... leaves it out, because it needs --config=release.
        tags = ["manual"],
        **kwargs
    )
