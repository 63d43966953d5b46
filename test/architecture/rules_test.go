package architecture

// A wing is a folder of pkg/. The wings are the stages of the pipeline, and imports between them go one way only.
type wing struct {
	name    string
	is      string
	imports []string // other wings
}

var wings = []wing{
	{"tree", "What is in the tree: the catalog, the version, the sources, the modules.", []string{"mechanism"}},
	{"make", "How a release is made of it.", []string{"tree", "release", "mechanism"}},
	{"release", "The hinge: the release as one value, release.json.", []string{"mechanism"}},
	{"ship", "What is done with a release that is made.", []string{"tree", "make", "release", "mechanism"}},
	{"prove", "Whether a release works, and whether it is the same as another.", []string{"tree", "release", "ship", "mechanism"}},
	{"maintain", "What a maintainer does before a release: choose, patch, generate, test.", []string{"tree", "make", "release", "mechanism"}},
	{"mechanism", "What knows nothing of Kubernetes or of a release.", nil},
	{"cli", "The command line, above all others.", []string{"tree", "make", "release", "ship", "prove", "maintain", "mechanism"}},
}

// A rule says what a package is for and what it must never know. What shows in imports is in not: import paths, those of this module
// from pkg/ on; "x/..." is x and everything below.
type rule struct {
	pkg   string // below pkg/
	is    string
	never string
	not   []string
}

// Ways to make something, which belong to few packages.
const (
	processes  = "os/exec"
	children   = "pkg/mechanism/child"
	network    = "net/http"
	archives   = "archive/..."
	compressed = "compress/..."
	klauspost  = "github.com/klauspost/compress/..."
	docker     = "github.com/docker/..."
	engine     = "pkg/mechanism/engine"
	images     = "github.com/google/go-containerregistry/pkg/v1/..."
	registries = "github.com/google/go-containerregistry/pkg/v1/remote"
	action     = "pkg/mechanism/action"
	catalog    = "pkg/tree/catalog"
	toolchain  = "pkg/make/toolchain"
	roads      = "pkg/make/road/..."
	plan       = "pkg/make/plan"
	release    = "pkg/release"
)

var rules = []rule{
	{"tree/catalog", "what can be built, for which platforms, into what", "how anything is built", []string{processes, network, action}},
	{"tree/stamp", "which version this is", "what a version is used for", []string{processes, catalog, action}},
	{"tree/folder", "what is in the folder of a tree, whatever git says of it", "git; what the answers are used for",
		[]string{processes, network, "pkg/mechanism/git", action, "pkg/tree/..."}},
	{"tree/worktree", "at which commit a tree is, and how its folder differs from that", "what the answers are used for",
		[]string{processes, "pkg/tree/stamp", "pkg/tree/source", "pkg/tree/module", "pkg/tree/patch", "pkg/tree/input", catalog}},
	{"tree/source", "which files are the sources", "where they are packed", []string{catalog, action, compressed, klauspost}},
	{"tree/module", "go.mod, go.sum and the modules in a binary: the one inventory of Go modules", "Kubernetes; the network; the go command",
		[]string{processes, network, catalog, action}},
	{"tree/patch", "patches to upstream's code: which there are, and what becomes of them",
		"how patched code is compiled; the network; the go command",
		[]string{processes, network, catalog, action}},

	{"tree/self", "which slipway is running, and what it is compiled of", "what else a tree has; what a slipway is named for",
		[]string{processes, network, catalog, action}},
	{"tree/input", "what a release is made of besides its tree, and where an unpacked tree has it",
		"the network; how inputs are fetched and packed",
		[]string{processes, network, catalog, action}},

	{"make/project", "a tree, opened: what all of making needs to know of it, and where in it things are made",
		"what a release holds, and how anything in it is made",
		[]string{processes, children, network, archives, compressed, klauspost, docker, engine, images, "pkg/make/plan", "pkg/make/target",
			"pkg/make/image", "pkg/make/license", "pkg/make/compile", "pkg/make/describe"}},
	{"make/target", "a type for each kind of thing in a release: its actions, and its entry in release.json", "which targets a request needs",
		[]string{processes, children, network, archives, compressed, klauspost, docker, engine, images, plan, "pkg/mechanism/archive",
			"pkg/mechanism/transfer",
			"pkg/make/road/local", "pkg/make/road/container", "pkg/make/road/bazel", "pkg/make/kubecross", "pkg/make/bazel"}},
	{"make/plan", "which targets a request needs: what is in which image, tarball and release",
		"how anything is made, or described in release.json",
		[]string{processes, children, network, archives, compressed, klauspost, docker, engine, images, "pkg/mechanism/archive",
			"pkg/make/compile", "pkg/make/image", "pkg/make/license", "pkg/make/pack", "pkg/make/describe", "pkg/make/inputs", toolchain,
			"pkg/make/patched", "pkg/make/codegen", "pkg/mechanism/debian", roads}},
	{"make/execute", "carry out a plan in a tree: the lock, the run, what is tidied up after it", "what a request needs; what users see",
		[]string{processes, network, docker, engine, images, catalog}},
	{"make/toolchain", "the pinned Go and its environment", "what is compiled with it", []string{catalog, roads, action}},
	{"make/patched", "modules as patches change them, for every road", "how they are compiled; which generators there are",
		[]string{processes, network, plan, roads, docker, engine}},
	{"make/gitsource", "Kubernetes' modules, made of a commit instead of fetched from a module proxy",
		"how a tree moves to another version; which modules a release links",
		[]string{processes, network, plan, roads, docker, engine, "pkg/make/patched", "pkg/make/published", "pkg/make/codegen",
			"pkg/make/project", release}},
	{"make/published", "Kubernetes' modules, as patches change them, for programs outside of the tree",
		"how modules are patched, and where code is generated; which version a tree has",
		[]string{processes, network, plan, roads, catalog, "pkg/make/patched", "pkg/make/codegen", "pkg/tree/stamp"}},
	{"make/road", "what a road is: a way to compile packages into binaries", "what a release is; any road of its own",
		[]string{processes, plan, release, "pkg/make/road/local", "pkg/make/road/container", "pkg/make/road/bazel"}},
	{"make/road/local", "compile with the Go of this machine", "what a release is; other roads",
		[]string{plan, release, docker, engine, "pkg/make/road/container", "pkg/make/road/bazel"}},
	{"make/road/container", "compile in a container", "what a release is; other roads",
		[]string{plan, release, "pkg/make/road/local", "pkg/make/road/bazel"}},
	{"make/road/bazel", "compile with Bazel", "what a release is; other roads",
		[]string{plan, release, docker, engine, "pkg/make/road/local", "pkg/make/road/container"}},
	{"make/road/prebuilt", "find and fetch packages that other machines have compiled, for roads that run the go command",
		"how a cache of Go looks; where a road keeps its own",
		[]string{processes, network, plan, release, docker, engine, "pkg/make/road/local", "pkg/make/road/container", "pkg/make/road/bazel"}},
	{"make/buildid", "how the go command computes build IDs", "which programs there are; how they are compiled; where files are",
		[]string{processes, network, catalog, action, plan, release}},
	{"make/relink", "link a program once for all versions of the same length, and share it",
		"what a version is; which programs there are; how results travel",
		[]string{network, toolchain, roads, catalog, plan, "pkg/mechanism/sharedcache", "pkg/mechanism/reapi/..."}},
	{"make/kubecross", "the build image", "how it is used", []string{plan, roads, action}},
	{"make/bazel", "find the pinned Bazel, or make a root that has it; run it", "what is built", []string{catalog, plan, roads}},
	{"make/license", "the license texts of what is linked", "which licenses are welcome", []string{processes, network, catalog, plan}},
	{"make/policy", "whether the licenses of what a release is made of may be in it", "how licenses are found; which licenses are good",
		[]string{processes, network, action, plan, release}},
	{"make/image", "container images from files", "registries, container engines, compilers",
		[]string{processes, network, docker, engine, registries, "github.com/google/go-containerregistry/pkg/v1/daemon", toolchain, roads, plan}},
	{"make/roads", "which roads there are, chosen by name and equipped for a tree", "what is compiled, and what for",
		[]string{processes, catalog, plan, release}},
	{"make/compile", "the actions of compiles: one for each binary, in batches", "which binaries there are, and how a road compiles",
		[]string{processes, network, docker, engine, catalog, plan, "pkg/make/road/local", "pkg/make/road/container", "pkg/make/road/bazel"}},
	{"make/objects", "share what go commands have compiled, through a cache of results", "how packages are compiled; how results travel",
		[]string{processes, network, toolchain, roads, catalog, plan, "pkg/mechanism/sharedcache", "pkg/mechanism/reapi/..."}},
	{"make/modproxy", "share modules and toolchains through a cache of results", "which modules a tree has; how results travel",
		[]string{processes, toolchain, roads, catalog, plan, "pkg/mechanism/sharedcache", "pkg/mechanism/reapi/..."}},
	{"make/pack", "the tarballs of a release", "which tarballs there are, and what they hold",
		[]string{processes, network, archives, compressed, klauspost, catalog, plan}},
	{"make/debrpm", "the debs and rpms of a release", "which packages there are, and how a deb or an rpm is written",
		[]string{processes, network, archives, compressed, klauspost, catalog, plan}},
	{"make/upstream", "another project's repository, put together again from its modules", "what it is for; patches",
		[]string{network, catalog, plan, roads, action, "pkg/mechanism/git"}},
	{"make/codegen", "run Kubernetes' code generators", "upstream's scripts; what a release holds; where patches come from",
		[]string{network, catalog, plan, roads}},
	{"make/inputs", "the tarball of a tree and everything that it is made of", "which modules, packages and toolchains a release needs",
		[]string{processes, network, catalog, plan}},
	{"make/api", "what the API of a kube-apiserver is, as files", "how kube-apiserver is made, and for which platforms",
		[]string{processes, children, catalog, plan, roads}},
	{"make/describe", "release.json, bills of materials, provenance and the files of checksums", "which artifacts a release has",
		[]string{processes, network, catalog, plan}},

	{"release", "a release as one value: artifacts and inputs by content", "how artifacts are made, and what is done with them",
		[]string{processes, network, archives, compressed, action}},

	{"release/sbom", "bills of materials, made of a release's description", "how artifacts are made; where a release lies",
		[]string{processes, network, action, catalog}},
	{"release/provenance", "statements of how a release was built, made of its description", "how artifacts are made; signatures",
		[]string{processes, network, archives, compressed, action, catalog, "pkg/mechanism/signature"}},

	{"ship/sign", "sign a release, and check its signatures", "how a release is made", []string{processes, network, "pkg/make/..."}},
	{"ship/trust", "whose signatures count, and when", "what is signed, and where signatures are",
		[]string{processes, images, release, "pkg/make/..."}},
	{"ship/verify", "whether a release, here or elsewhere, is as release.json says, and whose it is", "how a release is made",
		[]string{processes, "pkg/make/..."}},
	{"ship/site", "which files a published release has beside its own, and what is in them", "where a site is, and how files get there",
		[]string{processes, network, archives, compressed, action, "pkg/make/...", "pkg/ship/..."}},
	{"ship/publish", "what is sent to a target for a release, in which order; targets", "how a release is made, signed or checked",
		[]string{processes, compressed, "pkg/make/..."}},

	{"ship/bundle", "a release in one file: write it, read it, check it", "how a release is made, and what becomes of a bundle",
		[]string{network, compressed, "pkg/make/...", "pkg/ship/publish"}},

	{"ship/vulns", "which known vulnerabilities a release has", "how a release is made, and where databases are",
		[]string{processes, network, "pkg/make/..."}},
	{"ship/why", "where the parts of a release come from", "how a release is made, and where a tree keeps what it knows of packages",
		[]string{processes, network, "pkg/make/..."}},

	{"prove/cluster", "boot a cluster from a release, and remove it without a trace", "how a release is made",
		[]string{plan, docker, engine, images}},
	{"prove/cluster/machine", "processes, namespaces, control groups and the network of the machine that a cluster runs on",
		"clusters, releases and Kubernetes", []string{network, images, release, "pkg/ship/...", "pkg/prove/..."}},
	{"prove/cluster/tarball", "open the tarballs of a release that a cluster is made from", "clusters, and which artifacts they need",
		[]string{processes, network, images, "pkg/prove/..."}},
	{"prove/cluster/images", "read archives of container images, and push images to a cluster's registry",
		"which images a cluster needs; where the registry runs", []string{processes, release, "pkg/ship/...", "pkg/prove/..."}},
	{"prove/cluster/kubeadm", "configure kubeadm, kubelets and API servers", "processes and the machine",
		[]string{processes, network, images, release, "pkg/ship/...", "pkg/prove/..."}},
	{"prove/cluster/controlplane", "certificates, kubeconfigs and command lines of a control plane without nodes",
		"where programs are, and how they are started", []string{processes, network, images, release, "pkg/ship/...", "pkg/prove/..."}},
	{"prove/cluster/logs", "find, read and follow the logs of a cluster", "what a cluster is, and where its folders are",
		[]string{processes, network, images, release, "pkg/ship/...", "pkg/prove/..."}},
	{"prove/cluster/verify", "whether a cluster works: a table of checks", "how a release is made", []string{plan, docker, engine}},
	{"prove/cluster/conformance", "run upstream's conformance specs, and report", "which specs and images there are",
		[]string{catalog, docker, engine, images}},
	{"prove/rebuild", "make a release again from its provenance, and compare", "how its artifacts are made, and how releases differ",
		[]string{network, plan, roads}},
	{"prove/diff", "whether two releases, or two binaries, are the same", "how they were made", []string{processes, network, catalog, action}},

	{"maintain/bump", "move the tree to another version of Kubernetes, of Go or of another project", "how a release is made",
		[]string{network, plan, roads, docker, engine}},
	{"maintain/kit", "what a new distribution is made of", "how a release is made; which version of Kubernetes a distribution moves to",
		[]string{processes, network, "pkg/make/..."}},
	{"maintain/patching", "edit the patches of a tree, in upstream's repository", "how patches apply; how patched code is compiled",
		[]string{processes, network, catalog, plan, roads, docker, engine, "pkg/make/toolchain"}},
	{"maintain/lines", "the lines of a distribution, and work trees to change them in", "what is done on a line; how results are shown",
		[]string{processes, network, plan, roads, docker, engine, "pkg/make/..."}},
	{"maintain/kubetest", "run Kubernetes' own tests on what the tree is made of", "how a release is made",
		[]string{plan, release, docker, engine, catalog}},
	{"maintain/lint", "find mistakes in the tree's code and in what patches change", "how problems are shown; which platforms a tree has",
		[]string{plan, release, docker, engine, roads}},
	{"maintain/lint/vettool", "the analyzers, as a tool of go vet", "which packages are analyzed, and what becomes of the problems",
		[]string{plan, release, docker, engine, roads, network}},

	{"mechanism/action", "run a graph: keys, records, skipping, the lock, events", "Kubernetes, Go, git, printing",
		[]string{processes, network, children, "go/..."}},
	{"mechanism/archive", "tarballs that depend on their contents alone, fast", "what is packed", []string{processes, network, action}},
	{"mechanism/apt", "indexes of a repository of Debian packages", "which packages a repository has, where it is, and who signs it",
		[]string{processes, network, action}},
	{"mechanism/atomicdir", "replace a folder in one step", "what folders hold", []string{processes, network}},
	{"mechanism/atomicfile", "write a file that has its name only when it is whole", "what files hold", []string{processes, network}},
	{"mechanism/badrequest", "tell errors of a request from failures", "exit codes", []string{processes, network}},
	{"mechanism/checksum", "digests of files, and files of checksums", "which files a release has", []string{processes, network}},
	{"mechanism/child", "child processes that end with their parent", "which programs they are", []string{network}},
	{"mechanism/debian", "Debian packages: root file systems of them, and the files of exact versions", "which packages, and what for",
		[]string{docker, engine}},
	{"mechanism/ctxio", "readers and writers that end with a context", "what is read or written", []string{processes, network}},
	{"mechanism/deb", "write Debian packages", "which packages there are, and what is in them", []string{processes, network, action}},
	{"mechanism/engine", "drive a Docker Engine: containers, streams, labels", "what containers are for", []string{processes, action}},
	{"mechanism/exchange", "swap the names of two files or folders at once", "what is done where the system cannot",
		[]string{processes, network}},
	{"mechanism/golist", "read lists of packages of the go command: who imports whom", "what packages are for; the go command itself",
		[]string{processes, network, action}},
	{"mechanism/gotest", "run `go test -json`, and report on it", "which packages are tested, with which Go and flags",
		[]string{network, action}},
	{"mechanism/goflag", "quote words for flags of the go command", "which flags there are", []string{processes, network}},
	{"mechanism/git", "run git, in repositories that slipway makes without anybody's configuration",
		"what repositories hold, and whose they are", []string{network}},
	{"mechanism/gpg", "ask gpg for signatures by keys that it has", "what is signed", []string{network, action}},
	{"mechanism/govulns", "ask a database of Go's vulnerabilities about Go code",
		"what programs are for, and what becomes of findings", []string{processes}},
	{"mechanism/imagename", "check names of container images, as engines and registries read them", "which images there are",
		[]string{processes, network}},
	{"mechanism/openpgp", "keys and signatures of OpenPGP", "what is signed, and whose keys count", []string{processes, network, action}},
	{"mechanism/platform", "operating systems and processors by Go's names", "which platforms a release is made for",
		[]string{processes, network}},
	{"mechanism/reapi", "keep results and contents in a server of the Remote Execution API", "what the actions are, and whose results count",
		[]string{processes, action}},
	{"mechanism/reapi/credentials", "say to a server who asks: token, credential helper, certificate",
		"what is asked for; where users name files and programs", []string{action}},
	{"mechanism/recipe", "name the code that makes an output, for keys", "what is made", []string{processes, network, action}},
	{"mechanism/relation", "read relations between packages of an operating system", "which packages there are",
		[]string{processes, network}},
	{"mechanism/report", "results of checks as text, table, JSON and JUnit's XML", "what is checked", []string{processes, network}},
	{"mechanism/rpm", "write packages of rpm", "which packages there are, and what is in them", []string{processes, network, action}},
	{"mechanism/server", "run programs that serve, each while a function uses it", "which programs these are", []string{action}},
	{"mechanism/sharedcache", "keep signed results of actions in a server, for other trees and machines",
		"what actions make; where keys and servers are configured", []string{processes, network}},
	{"mechanism/signature", "keys and signatures, in the forms of sigstore and openssl",
		"what is signed, and whose keys count", []string{network}},
	{"mechanism/statcache", "remember what was computed from files, until they change", "what the sums are of", []string{processes, network}},
	{"mechanism/suggest", "which known name was probably meant", "any list of names", []string{processes, network}},
	{"mechanism/tail", "the last lines of a program's output, which say why it failed", "which program it is", []string{processes, network}},
	{"mechanism/tarfs", "read an uncompressed tar as a file system, without unpacking it", "which files a tar should have",
		[]string{processes, network, compressed}},
	{"mechanism/timestamp", "ask servers for timestamps of RFC 3161, and check them", "what the content is, and whose servers count",
		[]string{processes, action}},
	{"mechanism/transfer", "rsync over a stream", "what is at the stream's other end", []string{network, docker, engine}},
	{"mechanism/unpack", "read and unpack tarballs of others, within bounds", "which members these are", []string{processes, network}},
	{"mechanism/workdir", "a folder for what is not whole yet, for one process at a time", "what is made", []string{processes, network}},
	{"mechanism/variable", "read the values of environment variables, and refuse those that mean nothing", "which variables there are",
		[]string{processes, network}},
	{"mechanism/yum", "metadata of a repository of rpms", "which packages a repository has, where it is, and who signs it",
		[]string{processes, network, action}},

	{"cli", "the root command, exit codes, and advice: what to do about an error", "how anything is done: it asks others",
		[]string{network, archives, compressed, klauspost, docker, images}},
	{"cli/session", "what all subcommands share: the process, the common flags, the tree, output", "any subcommand",
		[]string{network, images, plan, "pkg/prove/...", "pkg/ship/...", "pkg/maintain/...", "pkg/cli/making", "pkg/cli/shipping",
			"pkg/cli/maintaining", "pkg/cli/clusters", "pkg/cli/tests"}},
	{"cli/making", "subcommands that make something of a tree, and those about shared caches", "how anything is made",
		[]string{network, "pkg/prove/...", "pkg/cli/shipping", "pkg/cli/maintaining", "pkg/cli/clusters", "pkg/cli/tests"}},
	{"cli/shipping", "subcommands about a release that is there", "how a release is signed, verified or compared",
		[]string{processes, network, "pkg/maintain/...", "pkg/cli/making", "pkg/cli/maintaining", "pkg/cli/clusters", "pkg/cli/tests"}},
	{"cli/maintaining", "subcommands that change a tree: bump and patch; outdated", "how a tree is bumped or patched",
		[]string{processes, network, "pkg/ship/...", "pkg/prove/...", "pkg/cli/making", "pkg/cli/shipping", "pkg/cli/clusters", "pkg/cli/tests"}},
	{"cli/clusters", "subcommands about clusters", "how a cluster works",
		[]string{network, plan, "pkg/maintain/...", "pkg/cli/making", "pkg/cli/shipping", "pkg/cli/maintaining", "pkg/cli/tests"}},
	{"cli/tests", "subcommands that run Kubernetes' own tests", "how tests run",
		[]string{processes, network, "pkg/ship/...", "pkg/cli/shipping", "pkg/cli/maintaining", "pkg/cli/clusters"}},
	{"cli/console", "show events", "what an action does", []string{processes, network, catalog, plan, "pkg/make/...", "pkg/prove/..."}},
	{"cli/packer", "make a release inside of Bazel's actions", "what a release holds", []string{processes, network, docker, engine}},
	{"cli/generate", "what `make update` generates, what `make verify` checks, `make help`", "what a release holds",
		[]string{network, docker, engine, plan}},
	{"cli/targets", "the targets of make", "more than the words of a command line, and what a variable of make means for it",
		[]string{processes, network, docker, engine, catalog, plan, "pkg/prove/...", "pkg/ship/..."}},
}

// only lists libraries that few packages may import, as everybody else asks these packages.
var only = []struct {
	library  string
	packages []string
}{
	{"github.com/spf13/cobra",
		[]string{"cli", "cli/session", "cli/making", "cli/shipping", "cli/maintaining", "cli/clusters", "cli/tests", "cli/generate"}},
	{"github.com/spf13/cobra/doc", []string{"cli/generate"}},
	{"github.com/spf13/pflag", []string{"cli", "cli/maintaining"}},
	{"golang.org/x/term", []string{"cli/session", "cli/making", "cli/clusters", "cli/console"}},
	{"github.com/clipperhouse/displaywidth", []string{"cli/console"}},
	{"golang.org/x/mod/modfile", []string{"tree/module", "maintain/bump", "maintain/kit", "maintain/kubetest"}},
	{"github.com/bluekeyes/go-gitdiff/gitdiff", []string{"tree/patch"}},
	{"github.com/agnivade/levenshtein", []string{"mechanism/suggest"}},
	{"go.yaml.in/yaml/v3",
		[]string{"tree/catalog", "cli/generate", "maintain/bump", "maintain/lint", "prove/cluster/kubeadm", "prove/cluster/verify",
			"ship/vulns"}},
	{"github.com/moby/sys/mountinfo", []string{"prove/cluster/machine"}},
	{"github.com/docker/docker/...", []string{"mechanism/engine", "make/kubecross"}},
	{"github.com/secure-systems-lab/go-securesystemslib/...", []string{"mechanism/signature"}},
	{"github.com/digitorus/...", []string{"mechanism/timestamp"}},
	{"github.com/spdx/tools-golang/...", []string{"release/sbom"}},
	{"github.com/CycloneDX/cyclonedx-go", []string{"release/sbom"}},
	{"github.com/package-url/packageurl-go", []string{"release", "release/sbom"}},
	{"github.com/distribution/reference", []string{"mechanism/imagename"}},
	{"github.com/github/go-spdx/...", []string{"tree/catalog", "mechanism/debian"}},
	{"github.com/google/licensecheck", []string{"make/license"}},
	{"github.com/ulikunitz/xz", []string{"mechanism/debian", "mechanism/debian/debiantest"}},
	{"github.com/ProtonMail/go-crypto/...", []string{"mechanism/openpgp", "mechanism/debian", "mechanism/debian/debiantest"}},
	{"google.golang.org/protobuf/...", []string{"mechanism/reapi", "mechanism/reapi/standin"}},
	{"google.golang.org/genproto/...", []string{"mechanism/reapi", "mechanism/reapi/standin"}},
	{"google.golang.org/grpc/...", []string{"mechanism/reapi", "mechanism/reapi/standin"}},
	{"github.com/bazelbuild/remote-apis/...", []string{"mechanism/reapi", "mechanism/reapi/standin"}},
	{"github.com/magefile/mage/...", []string{"cli/targets", "cli/tests"}},
	{"github.com/bazelbuild/buildtools/...", []string{"cli/generate", "make/bazel"}},
	{"golang.org/x/tools/...", []string{"cli/generate", "maintain/kit", "maintain/lint/vettool"}},
	{"github.com/ashanbrown/forbidigo/...", []string{"maintain/lint/vettool"}},
	{"sigs.k8s.io/logtools/...", []string{"maintain/lint/vettool"}},
}

// tests are packages that only tests import.
var tests = []string{"mechanism/action/cachetest", "mechanism/child/childtest", "mechanism/debian/debiantest",
	"mechanism/gpg/gpgtest", "mechanism/needs", "mechanism/timestamp/timestamptest",
	"mechanism/reapi/standin", "mechanism/recipe/recipetest", "tree/worktree/gittest"}

// pending lists what does not hold yet. It must become empty; what holds must not be in it.
var pending = []string{}
