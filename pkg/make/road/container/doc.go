// Package container is the road that compiles in containers: the tree's sources and the modules that they need are sent into an
// engine's volumes, a container without network compiles them there, and the binaries are fetched back. The engine may be on
// another machine: nothing relies on its seeing this machine's files.
//
//	this machine                     the engine
//	tree, module downloads ──rsync──▶ rsync container ──▶ volumes ──▶ build container, one for each run of the Go command
//	_output/dockerized/bin ◀──rsync── rsync container ◀── volumes ◀──┘
//
// Before its first compile, a run connects to the engine, removes containers that a killed run left, makes the build image if
// the engine lacks it (package kubecross), makes the data container that holds the volumes, and sends what changed. Each compile
// then has a build container of its own and fetches the binaries that this made.
//
// Containers end with the process that started them: their input is a connection of this process.
//
// What must never be in here: how containers are run (package engine), how files are transferred (package transfer), what is in
// the image (package kubecross), or what a release holds.
package container
