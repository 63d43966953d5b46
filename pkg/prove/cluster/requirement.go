package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// programs are those of this machine that a cluster with nodes needs, with the Debian packages that have them.
var programs = []struct{ name, debian string }{
	{"containerd", "containerd"}, {"ctr", "containerd"}, {"runc", "runc"},
	{"ip", "iproute2"}, {"iptables", "iptables"},
	{"nsenter", "util-linux"}, {"losetup", "mount"}, {"mount", "mount"}, {"hostname", "hostname"},
}

var errNotLinux = errors.New("a cluster needs Linux, perhaps in a virtual machine")

// ErrRoot is the error for a cluster with nodes that a user other than root asks for.
var ErrRoot = errors.New("nodes need root")

// requireMachine returns an error if a cluster with nodes needs what this machine or this user does not have.
func requireMachine() error {
	if runtime.GOOS != "linux" {
		return errNotLinux
	}
	if os.Geteuid() != 0 {
		return ErrRoot
	}
	var lacks, packages []string
	for _, p := range programs {
		if !findProgram(p.name) {
			lacks, packages = append(lacks, p.name), append(packages, p.debian)
		}
	}
	if len(lacks) > 0 {
		slices.Sort(packages)
		return fmt.Errorf("nodes need %s: install the Debian packages: apt-get install %s", strings.Join(lacks, ", "), strings.Join(slices.Compact(packages), " "))
	}
	return nil
}

// findProgram looks where commands of a cluster are looked for, whatever this process's PATH is.
func findProgram(name string) bool {
	path, _ := strings.CutPrefix(environment()[0], "PATH=")
	return slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool {
		_, err := exec.LookPath(filepath.Join(dir, name))
		return err == nil
	})
}
