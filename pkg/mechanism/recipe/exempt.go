package recipe

// prefix is that of the import paths whose packages have names here.
const prefix = "slipway.build/pkg/"

// Exempt lists what decides no bytes, though packages that do import it, and why: packages, by their path below pkg/, and modules of
// others. What these import is exempt, too, unless it is imported otherwise. test/architecture finds those that nothing needs.
var Exempt = map[string]string{
	"mechanism/action":     "runs actions, and moves to its place what they wrote",
	"mechanism/atomicfile": "writes what it gets, or nothing",
	"mechanism/badrequest": "marks errors",
	"mechanism/child":      "starts and stops processes",
	"mechanism/ctxio":      "passes on all that it reads or is given, or an error",
	"mechanism/goflag":     "quotes words for the go command, which takes them apart again",
	"mechanism/recipe":     "names code: with other names, keys differ anyway",
	"mechanism/server":     "starts and stops programs",
	"mechanism/suggest":    "guesses, for messages, which name was meant",
	"mechanism/tail":       "shortens output for messages",
	"tree/catalog":         "reads release.yaml: what it says gets into specs, and these are in keys",

	"github.com/ProtonMail/go-crypto":    "checks who signed an index of packages, when a lock is made of it: the lock is in keys",
	"github.com/knqyf263/go-deb-version": "chooses the newest package, when a lock is made: the lock is in keys",

	"golang.org/x/sync":               "runs functions side by side",
	"golang.org/x/sys":                "calls the system",
	"github.com/google/jsonschema-go": "describes the form of release.json to readers",
}

// modules lists the modules of others that decide bytes, with those that each of them links.
var modules = map[string][]string{
	"github.com/CycloneDX/cyclonedx-go": nil,
	"github.com/bluekeyes/go-gitdiff":   nil,
	"github.com/github/go-spdx/v2":      nil,
	"github.com/google/go-containerregistry": {
		"github.com/klauspost/compress", "github.com/opencontainers/go-digest", "github.com/opencontainers/image-spec",
	},
	"github.com/google/licensecheck":         nil,
	"github.com/klauspost/compress":          nil,
	"github.com/package-url/packageurl-go":   nil,
	"github.com/spdx/tools-golang":           {"github.com/anchore/go-struct-converter"},
	"github.com/ulikunitz/xz":                nil,
	"golang.org/x/crypto/x509roots/fallback": nil,
	"golang.org/x/mod":                       nil,
	"github.com/anchore/go-struct-converter": nil,
	"github.com/opencontainers/go-digest":    nil,
	"github.com/opencontainers/image-spec":   {"github.com/opencontainers/go-digest"},
}
