// Package engine drives a Docker Engine, here or on another machine: ownership of what is made there, containers that end with
// the process that started them, and streams to the processes in them.
//
// Everything that it makes in an engine has labels that name the tree it was made for. They show what a killed run left, and
// what must be removed with the tree. Things with another tree's labels, or none, are never touched.
//
// What must never be in here: what the containers are for (package road/container), what is in their image (package
// kubecross), or anything that needs the engine to see this machine's files.
package engine
