// Package container is the road over containers: the tree's sources and the modules that they need travel into an engine's
// volumes, a container without network compiles them there, and the binaries travel back. The engine may be on another
// machine: nothing relies on its seeing this machine's files.
//
//	this machine                     the engine
//	tree, module downloads ──rsync──▶ rsync container ──▶ volumes ──▶ build container, one for each run of the Go command
//	_output/dockerized/bin ◀──rsync── rsync container ◀── volumes ◀──┘
//
// A run does, once, before its first compile: look for the engine, remove containers that a killed run left, make the build
// image if the engine lacks it (package kubecross), make the data container that holds the volumes, send what changed. Then
// each compile has a build container and fetches what that made.
//
// Containers live no longer than who started them: their input ends with this process, and they end with their input.
//
// What must never be in here: how containers are run (package engine), how files travel (package transfer), what is in the
// image (package kubecross), or what a release holds.
package container
