package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/release"
	"slipway.build/pkg/ship/site"
	"slipway.build/pkg/tree/stamp"
)

// A Marker is a file that names a version, as upstream's stable.txt does.
type Marker struct {
	Path  string `json:"path"`
	Was   string `json:"was,omitempty"` // the version that it names at the target
	Is    string `json:"is,omitempty"`  // that it should name; "" if there is none any more
	Note  string `json:"note,omitempty"`
	State State  `json:"state"`
}

// markers returns the markers that a version may move. Each names the newest version that is at the target, and not withdrawn. The version
// counts as being there, and withdrawn is why it is withdrawn. No marker names a version without a tag.
func markers(ctx context.Context, c Channel, version, withdrawn string) ([]Marker, error) {
	all, err := standing(ctx, c)
	if err != nil {
		return nil, err
	}
	found := []Marker{}
	if stamp.IsUntagged(version) {
		return found, nil
	}
	all[version] = withdrawn
	major := strings.TrimPrefix(semver.Major(version), "v")
	minor := strings.TrimPrefix(semver.MajorMinor(version), "v")
	for _, class := range []string{"stable", "latest"} {
		if class == "stable" && stamp.IsCandidate(version) {
			continue
		}
		for _, of := range []string{"", major, minor} {
			m := Marker{Path: path.Join(site.Root, strings.TrimSuffix(class+"-"+of, "-")+".txt"), State: ToSend}
			was, err := c.Read(ctx, m.Path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			m.Was = string(was)
			if err == nil {
				v := strings.TrimSpace(m.Was)
				if !semver.IsValid(v) {
					return nil, fmt.Errorf("%s: %s has %.40q, which is no version: correct or remove it", c, m.Path, m.Was)
				}
				if _, known := all[v]; !known {
					all[v] = "" // published by other means: a marker never goes back from it
				}
			}
			for v, reason := range all {
				if reason == "" && belongs(v, class, of) && (m.Is == "" || stamp.Compare(v, m.Is) > 0) {
					m.Is = v
				}
			}
			if m.Is == m.Was {
				m.State = There
			}
			switch {
			case withdrawn != "":
				m.Note = version + " is withdrawn"
			case m.Is != version:
				m.Note = m.Is + " is newer"
			}
			found = append(found, m)
		}
	}
	return found, nil
}

// belongs reports whether a marker of a class and of a major or minor version may name a version.
func belongs(version, class, of string) bool {
	if stamp.IsUntagged(version) || class == "stable" && stamp.IsCandidate(version) {
		return false
	}
	v := strings.TrimPrefix(version, "v")
	return of == "" || v == of || strings.HasPrefix(v, of+".")
}

// standing returns the versions whose folders are whole at a target, each with why it is withdrawn.
func standing(ctx context.Context, c Channel) (map[string]string, error) {
	names, err := c.List(ctx, site.Root)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, name := range names {
		if !semver.IsValid(name) {
			continue
		}
		if _, err := c.Head(ctx, path.Join(site.Folder(name), release.File), -1, ""); err != nil { // which comes last
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return nil, err
		}
		if all[name], err = reason(ctx, c, name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// reason returns why a version is withdrawn, or "".
func reason(ctx context.Context, c Channel, version string) (string, error) {
	data, err := c.Read(ctx, path.Join(site.Folder(version), site.Withdrawn))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	text := strings.TrimSpace(string(data))
	if err == nil && text == "" {
		text = "no reason was given"
	}
	return text, err
}
