package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

// Labels of all that slipway makes in an engine.
const (
	TreeLabel   = "build.slipway.tree"   // Owner.ID
	FolderLabel = "build.slipway.folder" // where the tree is, for people who look at the engine
	RoleLabel   = "build.slipway.role"   // what a container is for
)

// An Owner is a tree, as an engine knows it. Two trees on one engine share nothing.
type Owner struct {
	ID     string // 12 hexadecimal digits
	Folder string // absolute
}

// OwnerOf names the tree in a folder of this machine. The name is the same from run to run, also after everything that was
// made in the tree was removed.
func OwnerOf(root string) Owner {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	host, _ := os.Hostname() // without a name or an ID, a machine is told apart by the other
	machine, _ := os.ReadFile("/etc/machine-id")
	sum := sha256.Sum256([]byte(host + "\x00" + string(machine) + "\x00" + root))
	return Owner{ID: hex.EncodeToString(sum[:6]), Folder: root}
}

// Labels are those of what the owner has; role is empty for what is no container.
func (o Owner) Labels(role string) map[string]string {
	labels := map[string]string{TreeLabel: o.ID, FolderLabel: o.Folder}
	if role != "" {
		labels[RoleLabel] = role
	}
	return labels
}

// Name is that of a thing the owner has: a container, a volume.
func (o Owner) Name(thing string) string { return "slipway-" + o.ID + "-" + thing }
