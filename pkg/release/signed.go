package release

// Names of signatures, beside the files of a release that they are of.
const (
	BundleSuffix    = ".sigstore.json"    // a sigstore bundle
	SignatureSuffix = ".sig"              // the signature alone, in base64
	RootFile        = "trusted_root.json" // which some clients want beside a public key; it names nobody to trust
)

// Signed lists the files of a release that are signed. They name all others by digest.
func Signed() []string { return []string{File, "SHA256SUMS"} }

// Signatures lists the names of all files of signatures.
func Signatures() []string {
	var names []string
	for _, name := range Signed() {
		names = append(names, name+BundleSuffix, name+SignatureSuffix)
	}
	return append(names, RootFile)
}
