package bazel

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
)

// An event holds the parts of a build event that are used here.
// Source: src/main/java/com/google/devtools/build/lib/buildeventstream/proto/build_event_stream.proto of Bazel.
type event struct {
	ID struct {
		NamedSet        *struct{ ID string }    `json:"namedSet"`
		TargetCompleted *struct{ Label string } `json:"targetCompleted"`
	} `json:"id"`
	NamedSetOfFiles *fileSet `json:"namedSetOfFiles"`
	Completed       *struct {
		Success     bool `json:"success"`
		OutputGroup []struct {
			Name     string  `json:"name"`
			FileSets []setID `json:"fileSets"`
		} `json:"outputGroup"`
	} `json:"completed"`
}

type setID struct {
	ID string `json:"id"`
}

// A fileSet holds files and other sets.
type fileSet struct {
	Files []struct {
		URI string `json:"uri"`
	} `json:"files"`
	FileSets []setID `json:"fileSets"`
}

// EventOptions returns the options with which bazel build writes the events that [Outputs] reads. Requested files are downloaded
// from a remote cache, and events hold their local paths.
func EventOptions(file string) []string {
	return []string{
		"--build_event_json_file=" + file, "--remote_download_outputs=toplevel", "--experimental_build_event_upload_strategy=local",
	}
}

// Outputs returns the files that were built for each label, from build events in JSON.
func Outputs(r io.Reader) (map[string][]string, error) {
	sets := map[string]*fileSet{}
	made := map[string][]string{}
	for lines := json.NewDecoder(r); ; {
		var e event
		if err := lines.Decode(&e); err == io.EOF {
			return made, nil
		} else if err != nil {
			return nil, err
		}
		if e.ID.NamedSet != nil && e.NamedSetOfFiles != nil {
			sets[e.ID.NamedSet.ID] = e.NamedSetOfFiles
		}
		// The event of a set precedes those that refer to it.
		if e.ID.TargetCompleted != nil && e.Completed != nil && e.Completed.Success {
			for _, group := range e.Completed.OutputGroup {
				if group.Name != "default" {
					continue
				}
				for _, set := range group.FileSets {
					files, err := filesOf(sets, set.ID)
					if err != nil {
						return nil, err
					}
					label := e.ID.TargetCompleted.Label
					made[label] = append(made[label], files...)
				}
			}
		}
	}
}

// filesOf returns the paths of all files in a set.
func filesOf(sets map[string]*fileSet, id string) ([]string, error) {
	set := sets[id]
	if set == nil {
		return nil, fmt.Errorf("set %s of files is missing", id)
	}
	var files []string
	for _, file := range set.Files {
		u, err := url.Parse(file.URI)
		if err != nil || u.Scheme != "file" {
			return nil, fmt.Errorf("%q is not a local file: was it left on the remote server?", file.URI)
		}
		files = append(files, u.Path)
	}
	for _, part := range set.FileSets {
		more, err := filesOf(sets, part.ID)
		if err != nil {
			return nil, err
		}
		files = slices.Concat(files, more)
	}
	return files, nil
}
