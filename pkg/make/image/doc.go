// Package image makes container images from files, without a daemon, a registry or root, and the same bytes each time.
//
// A [Spec] describes an image of a release as plain data. [Action] makes it, in two forms with the same config and so the
// same image ID: a docker archive, and a part of an OCI layout. [LayoutAction] joins the parts of all images and platforms.
//
// Beneath are [Contents], the layers and the config of an image, which [Component] puts together for a program on a [Base];
// [Build] makes an image of them, and [Image.Save] writes that as a docker archive. See the example.
//
// # Docker archive
//
// This is the file that `docker load` and `ctr images import` read:
//
//	manifest.json   config, tags and layers; first, so that readers need not skip the layers to find it
//	HEX.json        the image's config
//	HEX.tar         a layer, once per digest
//
// Its layers are plain tars, so a layer's digest is its diff ID. Release tarballs are compressed as a whole, and
// compressing twice costs time and gains nothing. A binary lies in the archive in one piece, so package archive
// recognizes it and compresses it only once.
//
// A layer is read from its files whenever it is needed, and never held in memory or in a second copy on disk: once for
// the digest, once for the archive. It is an error if a file changes in between.
//
// Times are the image's creation time, owners 0:0, modes 0644. go-containerregistry has a writer for this, too, but that
// puts several tags of one image in random order.
//
// # OCI layout
//
// The layout's index.json has a descriptor for each complete name of an image, "registry.k8s.io/kube-proxy:v1.36.0", under
// which skopeo and containerd find it. It leads to the image's index, which has a manifest for each platform. Layers are
// gzip; their diff IDs are the digests of the docker archive's layers. Package archive compresses them, mostly from its
// cache.
//
// A part is a folder with the blobs of one image for one platform, and [PartFile], which describes them. The layout holds
// hard links to these blobs, so an edit of one program writes and reads the blobs of its images alone.
//
// # Labels
//
// Images have these of the labels org.opencontainers.image.NAME:
//
//   - title, version, revision, created, source: an image of another project has that project's, and nothing of the release;
//     so it has the same digest in every release, until its program or its base changes.
//   - licenses: the licenses of everything that the program links, see [slipway.build/pkg/make/license.Expression]. Images
//     with files of Debian packages have none, as the texts of these name many licenses and not which file is under which.
//   - base.name, base.digest: the base is named slipway.build/images/BASE, after the folder that describes it; nothing is
//     published there. The digest is that of the manifest that the base would have as an image of its own: its
//     layers without program and labels, for the same platform and with the same creation time.
//
// # Bases
//
// The base NAME holds the files in images/NAME/rootfs and the links that images/NAME/links.txt lists. What can't be a file
// in a repository (certificates, empty folders, special modes) is in this package, see [Static].
//
// # What must never be in here
//
// Knowledge of a registry's protocol, running containers, compiling. The list of images in a release is the catalog's.
package image
