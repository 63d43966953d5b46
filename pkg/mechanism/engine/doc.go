// Package engine drives a Docker Engine, here or on another machine: who owns what there, containers that live no longer
// than the one who started them, and streams to the processes in them.
//
// Everything that it makes in an engine carries labels that name the tree it was made for. What a run that was killed has
// left behind is found by them, and so is what is to be removed with the tree; what carries another tree's labels, or none,
// is never touched.
//
// What must never be in here: what the containers are for (package road/container), what is in their image (package
// kubecross), or anything that needs the engine to see this machine's files.
package engine
