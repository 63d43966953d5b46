"""Stand-in for the provider of this name: rules_go reads .metadata only."""

PackageMetadataInfo = provider(
    doc = "What package a target comes from.",
    fields = {
        "files": "depset of File",
        "metadata": "File, a JSON document with the package URL",
    },
)
