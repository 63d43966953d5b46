package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

// Labels of everything that slipway makes in an engine.
const (
	TreeLabel   = "build.slipway.tree"   // Owner.ID
	FolderLabel = "build.slipway.folder" // where the tree is, for people who look at the engine
	RoleLabel   = "build.slipway.role"   // what a container is for
)

// An Owner identifies a tree in an engine. Two trees share nothing in an engine.
type Owner struct {
	ID     string // 12 hexadecimal digits
	Folder string // absolute
}

// OwnerOf returns the owner for the tree in a folder of this machine. It is the same in every run, even after all outputs were
// removed.
func OwnerOf(root string) Owner {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	host, _ := os.Hostname() // if one is missing, the other still identifies the machine
	machine, _ := os.ReadFile("/etc/machine-id")
	sum := sha256.Sum256([]byte(host + "\x00" + string(machine) + "\x00" + root))
	return Owner{ID: hex.EncodeToString(sum[:6]), Folder: root}
}

// Labels returns the labels of the owner's things; role is empty for all but containers.
func (o Owner) Labels(role string) map[string]string {
	labels := map[string]string{TreeLabel: o.ID, FolderLabel: o.Folder}
	if role != "" {
		labels[RoleLabel] = role
	}
	return labels
}

// Name returns the name of one of the owner's containers or volumes.
func (o Owner) Name(thing string) string { return "slipway-" + o.ID + "-" + thing }
