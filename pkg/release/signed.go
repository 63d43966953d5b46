package release

import "strings"

// Names of signatures in a release's folder.
const (
	BundleSuffix    = ".sigstore.json"    // a sigstore bundle, beside the file that it is of
	SignatureSuffix = ".sig"              // the signature alone, in base64
	RootFile        = "trusted_root.json" // which some clients want beside a public key; it names nobody to trust
	Attestations    = "attestations"      // the folder of bundles that hold signed statements
)

// Signed lists the files of a release that are signed as they are. They name all others by digest.
func Signed() []string { return []string{File, "SHA256SUMS"} }

// Signatures lists the names of the signatures of these files.
func Signatures() []string {
	var names []string
	for _, name := range Signed() {
		names = append(names, name+BundleSuffix, name+SignatureSuffix)
	}
	return append(names, RootFile)
}

// Added is the folder of signatures by more than one key, in the release's folder. The names below AddedDir are those of the first key's
// in the release's folder.
const Added = "signatures"

// AddedDir returns the folder of the signatures that the owner of a key has added. The hint is the key's, in base64.
func AddedDir(hint string) string { return Added + "/" + fileName(hint) }

// Rebuilds is the folder of what others state about a release that they made again, in the release's folder.
const Rebuilds = "rebuilds"

// RebuildFile returns the name of what the owner of a key states. The hint is the key's, in base64.
func RebuildFile(hint string) string {
	return Rebuilds + "/" + fileName(hint) + BundleSuffix
}

func fileName(hint string) string {
	return strings.NewReplacer("/", "_", "+", "-", "=", "").Replace(hint)
}
