package container

import (
	"slices"
	"strings"

	"slipway.build/pkg/make/toolchain"
	"slipway.build/pkg/mechanism/engine"
)

// Paths in containers. images/kube-cross has these folders and programs.
const (
	treeFolder    = "/tree"
	outputFolder  = "/tree/_output"
	modulesFolder = "/modules" // laid out as a module proxy's
	cacheFolder   = "/cache"
	ownCache      = cacheFolder + "/go-build" // GOCACHE
	sharedCache   = cacheFolder + "/packages" // GOCACHE of compiles with packages that were compiled elsewhere
	outFolderRoot = "/out"
	goFolder      = "/usr/local/go"
	workFolder    = "/work" // the tree of user commands, in rsync containers

	attended  = "/usr/local/bin/attended"   // runs a command until it ends or its own input does
	rsyncHost = "/usr/local/bin/rsync-host" // prepares for rsync daemons
	secrets   = "/run/rsync"
)

// Roles of containers.
const (
	roleData  = "data"
	roleRsync = "rsync"
	roleBuild = "build"
	roleUser  = "run" // a user's command
)

// A mounted volume.
type mounted engine.Volume

var (
	treeVolume    = mounted{Name: "tree", Path: treeFolder}
	workVolume    = mounted{Name: "work", Path: workFolder}     // the tree again, for user commands, which may change it
	outputVolume  = mounted{Name: "output", Path: outputFolder} // what user commands make
	modulesVolume = mounted{Name: "modules", Path: modulesFolder}
	cacheVolume   = mounted{Name: "cache", Path: cacheFolder} // both GOCACHEs, GOMODCACHE, HOME
	outVolume     = mounted{Name: "out", Path: outFolderRoot} // binaries
)

func (m mounted) reading() mounted         { m.ReadOnly = true; return m }
func (m mounted) at(folder string) mounted { m.Path = folder; return m }

// goVolume returns the volume that holds the image's GOROOT. Reading the headers of a thousand packages from an image's layers
// can take longer than compiling one, if the engine's storage is slow.
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

// scratch lists the folders in memory, with their sizes in bytes. Large temporary files are in a volume (GOTMPDIR).
var scratch = map[string]int64{"/tmp": 1 << 30}

// environment returns the environment of Go commands in containers. Nothing in it depends on this machine.
func environment(goflags, cache string) []string {
	return append(slices.DeleteFunc(toolchain.Constructed(), func(kv string) bool { return kv == "CGO_ENABLED=0" }),
		"PATH="+goFolder+"/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"GOROOT="+goFolder,
		"GOPROXY=file://"+modulesFolder, "GOSUMDB=off",
		"GOCACHE="+cache, "GOMODCACHE="+cacheFolder+"/mod", "GOPATH="+cacheFolder+"/go",
		"HOME="+cacheFolder+"/home",
		"GOFLAGS="+goflags,
	)
}
