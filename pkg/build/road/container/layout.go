package container

import (
	"slices"
	"strings"

	"slipway.build/pkg/build/toolchain"
	"slipway.build/pkg/mechanism/engine"
)

// Where things are in containers. images/kube-cross has these folders, and the programs.
const (
	treeFolder    = "/tree"
	outputFolder  = "/tree/_output"
	modulesFolder = "/modules" // laid out as a module proxy's
	cacheFolder   = "/cache"
	outFolderRoot = "/out"
	goFolder      = "/usr/local/go"
	workFolder    = "/work" // where rsync containers have the tree of somebody's own commands

	attended  = "/usr/local/bin/attended"   // runs a command until it ends or its own input does
	rsyncHost = "/usr/local/bin/rsync-host" // gets ready for rsync daemons
	secrets   = "/run/rsync"
)

// What containers are for.
const (
	roleData  = "data"
	roleRsync = "rsync"
	roleBuild = "build"
	roleUser  = "run" // somebody's own command
)

// A mounted volume.
type mounted engine.Volume

var (
	treeVolume    = mounted{Name: "tree", Path: treeFolder}
	workVolume    = mounted{Name: "work", Path: workFolder}     // the tree again, for commands: they may change it
	outputVolume  = mounted{Name: "output", Path: outputFolder} // what is made by somebody's own command
	modulesVolume = mounted{Name: "modules", Path: modulesFolder}
	cacheVolume   = mounted{Name: "cache", Path: cacheFolder} // GOCACHE, GOMODCACHE, HOME
	outVolume     = mounted{Name: "out", Path: outFolderRoot} // binaries
)

func (m mounted) reading() mounted         { m.ReadOnly = true; return m }
func (m mounted) at(folder string) mounted { m.Path = folder; return m }

// goVolume holds GOROOT: in the image's layers, an engine whose storage is slow takes longer to read the headers of a thousand
// packages than Go takes to compile one. It belongs to the image.
func goVolume(image string) mounted {
	return mounted{Name: "go-" + image[strings.LastIndex(image, "-")+1:], Path: goFolder, Filled: true}
}

func allVolumes(image string) []engine.Volume {
	return volumes(treeVolume, workVolume, outputVolume, modulesVolume, cacheVolume, outVolume, goVolume(image))
}

func volumes(all ...mounted) []engine.Volume {
	var volumes []engine.Volume
	for _, m := range all {
		volumes = append(volumes, engine.Volume(m))
	}
	return volumes
}

// scratch are the folders in memory. What is large goes to a volume (GOTMPDIR).
var scratch = map[string]int64{"/tmp": 1 << 30}

// environment is that of Go commands in containers: nothing of this machine is in it.
func environment(goflags string) []string {
	return append(slices.DeleteFunc(toolchain.Constructed(), func(kv string) bool { return kv == "CGO_ENABLED=0" }),
		"PATH="+goFolder+"/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"GOROOT="+goFolder,
		"GOPROXY=file://"+modulesFolder, "GOSUMDB=off",
		"GOCACHE="+cacheFolder+"/go-build", "GOMODCACHE="+cacheFolder+"/mod", "GOPATH="+cacheFolder+"/go",
		"HOME="+cacheFolder+"/home",
		"GOFLAGS="+goflags,
	)
}
