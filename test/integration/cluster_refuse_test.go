//go:build integration && linux

package integration

// Clusters that cannot boot: what is wrong with a release or a machine is reported before anything starts.

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	releasejson "slipway.build/pkg/release"
)

func TestTarballWithAChangedByteIsRefused(t *testing.T) {
	tr := clusterTree(t)
	dir := t.TempDir()
	run(t, dir, nil, "cp", filepath.Join(released(t), releasejson.File), filepath.Join(released(t), serverTarball), dir).ok(t)
	f, err := os.OpenFile(filepath.Join(dir, serverTarball), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	const at = 1 << 20
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
	tr.slipway(t, "cluster", "up", "--control-plane-only", "--from", dir).fails(t, 1,
		serverTarball+": not as release.json describes it: its SHA-256 is ")
	if tr.exists("_output/cluster/slipway") {
		t.Error("something was made of it")
	}
}

func TestTarballWithoutAnImageIsRefused(t *testing.T) {
	rare(t, "it copies the server tarball and boots half a cluster")
	needNodes(t)
	tr := clusterTree(t)
	before := tracesOf(t)
	dir := t.TempDir()
	if err := without(filepath.Join(released(t), serverTarball), filepath.Join(dir, serverTarball),
		"kubernetes/addons/images/coredns.tar"); err != nil {
		t.Fatal(err)
	}
	describeWithout(t, dir, "linux/"+runtime.GOARCH+"/coredns.tar")
	tr.slipway(t, "cluster", "up", "--from", dir).fails(t, 1, "lacks images that kubeadm wants: ", "/coredns:", "slipway cluster down")
	tr.slipway(t, "cluster", "down").ok(t)
	before.nothingLeft(t)
}

// The program is hidden in a mount namespace, so that other processes still have it.
func TestMissingProgramForNodesIsNamed(t *testing.T) {
	needNodes(t)
	tr := clusterTree(t)
	for program, pkg := range map[string]string{"ip": "iproute2", "nsenter": "util-linux"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		run(t, tr.dir, nil, "unshare", "--mount", "sh", "-c", `mount -n --bind /dev/null "$1" && exec "$2" cluster up --from /`,
			"sh", path, slipway(t)).
			fails(t, 1, "nodes need "+program+": install the Debian packages: apt-get install "+pkg)
	}
}

// describeWithout describes a server tarball that lacks an artifact, and otherwise holds what the shared release's holds.
func describeWithout(t *testing.T, dir, artifact string) {
	t.Helper()
	r, err := releasejson.Read(released(t))
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, serverTarball))
	if err != nil {
		t.Fatal(err)
	}
	short, long := sha256.Sum256(content), sha512.Sum512(content)
	for i, a := range r.Artifacts {
		if a.Name == serverTarball {
			a.Size, a.SHA256, a.SHA512 = int64(len(content)), hex.EncodeToString(short[:]), hex.EncodeToString(long[:])
			a.Members = slices.DeleteFunc(a.Members, func(m releasejson.Member) bool { return m.Artifact == artifact })
			r.Artifacts[i] = a
		}
	}
	description, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	put(t, description, filepath.Join(dir, releasejson.File))
}

// without copies a tarball, except for one member.
func without(from, to, member string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	unzipped, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	zipped, err := gzip.NewWriterLevel(out, gzip.NoCompression)
	if err != nil {
		return err
	}
	r, w := tar.NewReader(unzipped), tar.NewWriter(zipped)
	found := false
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if h.Name == member {
			found = true
			continue
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(w, r); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("%s has no %s", from, member)
	}
	return errors.Join(w.Close(), zipped.Close())
}
