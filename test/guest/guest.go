// Package guest runs scripts on a machine with a kernel of its own, for tests of features that this machine's kernel lacks, or lacks
// once it has booted. The machine is QEMU, which translates every instruction and so runs wherever Debian does, with a file system of
// Debian packages.
//
// It is slow: computing takes about ten times as long as here.
package guest

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"slipway.build/pkg/mechanism/debian"
)

// Emulator is a program that a guest needs, besides mmdebstrap and mke2fs, and EmulatorPackage the Debian package that has it.
const Emulator, EmulatorPackage = "qemu-system-x86_64", "qemu-system-x86"

// A Guest is a machine that is switched off.
type Guest struct {
	dir string // with its kernel, and the image of its file system
}

//go:embed init.sh
var initScript string

// Make makes a guest in an empty folder, as root, which takes a minute and 2 GB. It has the given packages in addition to what it boots
// with.
func Make(ctx context.Context, dir string, packages ...string) (*Guest, error) {
	if runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("guests are for amd64, and this is %s", runtime.GOARCH)
	}
	g := &Guest{dir: dir}
	root := g.path("root")
	if err := os.Mkdir(root, 0o755); err != nil {
		return nil, err
	}
	defer os.RemoveAll(root)
	system := debian.System{
		Mirror:   os.Getenv("SLIPWAY_DEBIAN_MIRROR"),
		Packages: slices.Concat([]string{"linux-image-amd64", "initramfs-tools", "kmod", "mount", "procps", "util-linux"}, packages),
		Options:  []string{`--aptopt=APT::Install-Recommends "false"`, "--customize-hook=" + debian.Cleanse},
	}
	err := system.Pack(ctx, func(tar io.Reader) error {
		return command(ctx, tar, "tar", "-x", "-p", "--numeric-owner", "-C", root, "--exclude=./dev/*")
	})
	if err != nil {
		return nil, err
	}
	for from, to := range map[string]string{"vmlinuz": kernel, "initrd.img": initrd} { // links to the files of the only version
		if err := command(ctx, nil, "cp", filepath.Join(root, from), g.path(to)); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(root, "sbin/guest-init"), []byte(initScript), 0o755); err != nil {
		return nil, err
	}
	return g, command(ctx, nil, "mke2fs", "-q", "-t", "ext4", "-d", root, g.path(image), "10G")
}

const kernel, initrd, image = "vmlinuz", "initrd.img", "root.img"

func (g *Guest) path(name string) string { return filepath.Join(g.dir, name) }

func command(ctx context.Context, stdin io.Reader, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// A Result is the outcome of a script.
type Result struct {
	Output string // standard output and error
	Code   int    // its exit code
}

// Run boots the machine with that much memory, runs a shell script there as root, and switches the machine off. The script can read
// and write this machine's files below /host. Run fails if the machine does, not if the script does.
func (g *Guest) Run(ctx context.Context, megabytes int, script string) (Result, error) {
	dir, err := os.MkdirTemp(g.dir, "run-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "script"), []byte(script), 0o644); err != nil {
		return Result{}, err
	}
	var console bytes.Buffer
	cmd := exec.CommandContext(ctx, Emulator, "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", strconv.Itoa(runtime.NumCPU()),
		"-m", strconv.Itoa(megabytes), "-nographic", "-nic", "none", "-no-reboot",
		"-kernel", g.path(kernel), "-initrd", g.path(initrd),
		"-append", "root=/dev/vda rw console=ttyS0 quiet panic=-1 init=/sbin/guest-init guest.folder="+dir,
		"-drive", "if=virtio,format=raw,cache=unsafe,file="+g.path(image),
		"-virtfs", "local,path=/,mount_tag=host,security_model=none,multidevs=remap")
	cmd.Stdout, cmd.Stderr = &console, &console
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 10 * time.Second
	failure := cmd.Run()
	output, _ := os.ReadFile(filepath.Join(dir, "output"))
	result := Result{Output: string(output)}
	text, err := os.ReadFile(filepath.Join(dir, "code"))
	if err == nil {
		result.Code, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err != nil {
		return result, fmt.Errorf("the guest did not report the script's end: %w\n%s", errors.Join(ctx.Err(), failure, err), console.Bytes())
	}
	return result, nil
}
