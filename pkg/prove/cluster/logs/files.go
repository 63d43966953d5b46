package logs

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A File is a file with the log of a component.
type File struct {
	Component string
	From      string // which of several logs of the component it is

	path      string
	container bool // the container runtime wrote it
}

// Components returns the names of the components that have logs.
func Components(files []File) []string {
	var all []string
	for _, f := range files {
		all = append(all, f.Component)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// OfPrograms returns the logs of programs in a folder.
func OfPrograms(dir, from string) ([]File, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.log"))
	var files []File
	for _, path := range paths {
		files = append(files, File{strings.TrimSuffix(filepath.Base(path), ".log"), from, path, false})
	}
	return files, err
}

// OfNode returns the logs in the folder /var/log of a node: of programs, and of the newest containers in the namespace kube-system. From
// says which node it is, and may be empty.
func OfNode(dir, node, from string) ([]File, error) {
	files, err := OfPrograms(dir, from)
	if err != nil {
		return nil, err
	}
	containers, err := filepath.Glob(filepath.Join(dir, "pods", "kube-system_*", "*"))
	if err != nil {
		return nil, err
	}
	newest := map[string]int{} // indexes of files, by Pod and container: a static Pod that was changed has several folders
	times := map[string]time.Time{}
	for _, c := range containers {
		path, changed := lastLog(c)
		if path == "" {
			continue
		}
		pod := strings.Split(filepath.Base(filepath.Dir(c)), "_")[1] // of NAMESPACE_NAME_UID
		f := File{filepath.Base(c), from, path, true}
		if pod != f.Component+"-"+node { // not a static Pod: a node may have several
			f.From = strings.TrimSpace(from + " " + pod)
		}
		key := pod + "/" + f.Component
		if at, ok := newest[key]; !ok {
			newest[key], files = len(files), append(files, f)
		} else if changed.After(times[key]) {
			files[at] = f
		} else {
			continue
		}
		times[key] = changed
	}
	return files, nil
}

// lastLog returns the log of the last run of a container, and when it was last written. A run's log is NUMBER.log.
func lastLog(dir string) (path string, changed time.Time) {
	entries, _ := os.ReadDir(dir) // a container may be removed at any moment
	last := -1
	for _, e := range entries {
		number, err := strconv.Atoi(strings.TrimSuffix(e.Name(), ".log"))
		if err != nil || number < last {
			continue
		}
		if info, err := e.Info(); err == nil {
			last, path, changed = number, filepath.Join(dir, e.Name()), info.ModTime()
		}
	}
	return path, changed
}
