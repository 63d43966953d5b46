// Package images reads archives of container images, and pushes images to a cluster's registry.
//
// A cluster has a registry of its own, which its nodes ask for every image, whichever registry's name the image has. So an image keeps its
// repository and its tag there, and only the registry differs.
//
// # What must never be in here
//
// Which images a cluster needs, what runs in them, and where the registry runs.
package images
