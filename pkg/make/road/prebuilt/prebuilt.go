// Package prebuilt finds and fetches packages that other machines have compiled, for roads that run the go command.
//
// What must never be in here: how a cache of Go looks (package objects), and where a road keeps its own.
package prebuilt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"slipway.build/pkg/make/objects"
	"slipway.build/pkg/make/road"
	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/action"
)

// Packages are those of one compilation.
type Packages struct {
	Root        string // of the tree
	Go          string // version of the compiler
	CPUs        int    // of the machine that compiles
	Compilation road.Compilation
	Report      action.Report
	Slow        *atomic.Bool // fetching takes longer than compiling; it is not tried again in this run
}

// Find returns the packages that the shared cache has for a command. It reports errors, and takes what could not be asked as missing.
func (p *Packages) Find(ctx context.Context, command road.GoCommand) objects.List {
	if p.Compilation.Shared == nil || p.Slow.Load() {
		return nil
	}
	var binaries [][]string
	for _, t := range command.Targets {
		keys, err := p.Keys(t.Binary)
		if err != nil {
			p.Failed(ctx, err)
			return nil
		}
		binaries = append(binaries, keys)
	}
	s := objects.Share{Cache: p.Compilation.Shared.Cache()}
	found, err := s.Find(ctx, binaries)
	if err != nil {
		p.Failed(ctx, err)
	}
	return found
}

// Folder returns the cache of Go for fetched packages on this machine. They never get into the user's own cache, which a release without a
// shared cache uses.
func Folder() (string, error) {
	caches, err := os.UserCacheDir()
	return filepath.Join(caches, "slipway", "go-build"), err
}

// Fetch fetches packages into a folder that is a cache of Go, or becomes one. It reports errors, and whether the folder can be used: the go
// command compiles what is missing there.
func (p *Packages) Fetch(ctx context.Context, folder string, found objects.List) bool {
	start := time.Now()
	s := objects.Share{
		Cache: p.Compilation.Shared.Cache(), Folder: folder, Scratch: p.Compilation.Scratch,
		Compile: p.compileTime,
		Progress: func(done, total int64) {
			p.Report.Progress(fmt.Sprintf("fetching compiled packages: %d of %d MiB", done>>20, total>>20))
		},
	}
	fetched, err := s.Fetch(ctx, found)
	if slow := new(objects.SlowError); errors.As(err, &slow) {
		p.Slow.Store(true)
		p.Report.Output(fmt.Sprintf("no more compiled packages are fetched in this run: %v", slow))
	} else if err != nil {
		p.Failed(ctx, err)
	}
	if fetched.Objects > 0 {
		p.Report.Step(fmt.Sprintf("%d compiled packages fetched, %d MiB", fetched.Objects, fetched.Bytes>>20), time.Since(start))
	}
	return fetched.Ready
}

// Failed reports why packages are missing, unless the run is over.
func (p *Packages) Failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		p.Report.Output(fmt.Sprintf("some compiled packages could not be fetched, and are compiled here: %v", err))
	}
}

// compileTime returns how long the go command takes for packages: 305 s of processor time were measured for the 1,414 of kube-scheduler.
func (p *Packages) compileTime(packages int) time.Duration {
	return time.Duration(packages) * 305 * time.Second / 1414 / time.Duration(max(p.CPUs, 1))
}

// Keys returns the keys of a binary's lists: with the tree's patches, if there are any, and without them. Patches leave most packages as
// they are, so a list without them is the next best.
func (p *Packages) Keys(bin road.Binary) ([]string, error) {
	plain := p.Compilation.Spec
	plain.ModFile, plain.LDFlags, plain.Options.LDFlags = "", "", ""
	files := []string{filepath.Join(p.Root, filepath.FromSlash(plain.Module), "go.mod")}
	if m := p.Compilation.ModFile; m != "" {
		if !path.IsAbs(m) {
			m = filepath.Join(p.Root, filepath.FromSlash(m))
		}
		files = append([]string{m}, files...)
	}
	var keys []string
	for _, file := range files {
		parts := slices.Concat([]string{p.Go, plain.Platform.String(), plain.Options.GoFlags, plain.Module, bin.Package, fmt.Sprint(bin.Test)},
			toolchain.Levels(), toolchain.FIPSEnv(plain.Options.FIPS), plain.BuildFlags())
		for _, name := range []string{file, strings.TrimSuffix(file, ".mod") + ".sum"} {
			data, err := os.ReadFile(name)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a module without dependencies has no go.sum
				return nil, err
			}
			sum := sha256.Sum256(data)
			parts = append(parts, hex.EncodeToString(sum[:]))
		}
		keys = append(keys, objects.Key(parts...))
	}
	return keys, nil
}
