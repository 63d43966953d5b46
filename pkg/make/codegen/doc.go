// Package codegen runs the generators of Kubernetes' code: what makes deep copies, defaults, conversions, validations,
// OpenAPI definitions, protobuf codecs, apply configurations, clients, listers and informers from types and the markers in
// their comments.
//
// The generators are those of the tree's own Kubernetes version. They are compiled by the pinned Go, because some of them
// print what the standard library formats, from the modules build/codegen and build/codegen/bindings, which `slipway bump`
// keeps at the versions that upstream uses. Compiled generators are kept in the user's cache folder under the digest of
// all their sources.
//
// Generators work on three kinds of code:
//
//   - Kubernetes itself, as upstream's repository ([Repository]). Upstream groups its generators and runs the groups in an
//     order, since some read the output of earlier ones; Groups lists them.
//   - the API groups of a project with a layout of its own: pkg/apis, clients, OpenAPI definitions ([Project]). Kubernetes has
//     some below staging/.
//   - a distribution's own API packages below cmd/ ([Own]).
//
// # Which packages a generator gets
//
// Markers decide: a package with a comment `// +k8s:deepcopy-gen=package` is one for deepcopy-gen. Upstream's scripts find
// them in the same way. A flag that only some versions of a generator know is passed if its --help names it.
//
// Some generators may see only the packages that changed: those that make a file from one package and what it imports.
// The rest need all: defaulter-gen, conversion-gen and validation-gen call functions that they generate in other packages, and drop the
// calls silently if these are not given to them; openapi-gen and the makers of clients write files about all packages.
//
// # Protocol buffers
//
// go-to-protobuf runs protoc, of which the Go module proxy has none. The command build/codegen/protoc takes its place.
//
// # What must never be in here
//
// Upstream's scripts, or any other source of upstream's. What a release holds. Where patches come from.
package codegen
