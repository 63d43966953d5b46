// Package image makes container images from files, without a daemon, a registry or root, and the same bytes each time.
//
// A [Spec] says what an image holds: layers of files, the program to start, its environment and labels. [Build] makes
// an image of it, and [Save] writes that as the archive `docker load` and `ctr images import` read:
//
//	base, err := image.Static(root)
//	spec := image.Component(base, image.Program{Name: "kube-scheduler", Binary: path, ...})
//	img, err := image.Build(spec)
//	err = image.Save(ctx, w, img, image.Tags("registry.k8s.io", "kube-scheduler", "amd64", "v1.36.0"))
//
// # Layers
//
// Layers are plain tars, never compressed, so a layer's digest is its diff ID. Release tarballs are compressed as a
// whole, and compressing what is compressed already costs time and gains nothing; and as a binary lies in the archive
// in one unbroken piece, whoever compresses the archive can recognize a binary that was compressed before.
//
// A layer is tens of megabytes of binaries. It is read from those files whenever it is needed, and never held in
// memory or in a second copy on disk: Build reads the files once for the digest, Save once more. A file that changes
// in between is an error, not a broken image.
//
// Media types are OCI's, which has one for uncompressed layers that registries know. go-containerregistry's validate
// package reads every layer as gzip and so can't check these; what it reads back from a saved archive it can.
//
// # Archive
//
//	manifest.json   config, tags and layers; first, so that nobody reads through the layers to find it
//	HEX.json        the image's config
//	HEX.tar         a layer, once per digest
//
// Times are the image's creation time, owners 0:0, modes 0644. go-containerregistry has a writer for this, too: it puts
// several tags of one image in random order.
//
// # Bases
//
// What images/NAME/rootfs holds is the base named NAME, with the links that images/NAME/links.txt lists. What can't be a file in a repository (certificates, empty
// folders, special modes) is in this package, see [Static].
//
// Nothing in here knows a registry's protocol, runs a container, or compiles. Which images a release has is the
// catalog's to say.
package image
