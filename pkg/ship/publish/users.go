package publish

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"

	"slipway.build/pkg/mechanism/badrequest"
)

// checkURL checks the address at which readers find a target. It ends without a slash.
func checkURL(address string) error {
	u, err := url.Parse(address)
	place := err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" || err == nil && u.Scheme == "file" && u.Path != ""
	if !place || u.User != nil || u.RawQuery+u.Fragment != "" || strings.ContainsAny(address, " \t\r\n") {
		return badrequest.Mark(fmt.Errorf("%q is not where users find a site, such as https://dl.example.com", address))
	}
	return nil
}

// words are those with which the metadata of a version begins: of +my-acme-1, my-acme.
var words = regexp.MustCompile(`^\+([A-Za-z][A-Za-z0-9]*(?:-[A-Za-z][A-Za-z0-9]*)*)`)

// usersName returns what users' machines call the repositories: acme if the version is v1.37.2+acme.1, and kubernetes if it names nobody.
func usersName(version string) string {
	if m := words.FindStringSubmatch(semver.Build(version)); m != nil {
		return strings.ToLower(m[1])
	}
	return "kubernetes"
}

// usersFiles returns the names at the target of the files with which apt and dnf find the repositories. There are none without an address.
func (rs *packages) usersFiles() []string {
	if rs.URL == "" {
		return nil
	}
	name := path.Join(rs.folder, usersName(rs.version))
	return []string{name + ".sources", name + ".repo"}
}

// usersPages returns these files. Both name the place at which users put the keys before they have the package with them.
func (rs *packages) usersPages(ctx context.Context) ([]Page, error) {
	names := rs.usersFiles()
	if names == nil {
		return nil, nil
	}
	at, file := rs.URL+"/"+rs.folder, "/"+keyringFile(rs.version)
	about := func(key string) string {
		return fmt.Sprintf("# The package %s keeps the keys up to date. Before it is installed, fetch them:\n"+
			"# curl --create-dirs -fsSLo %s %s\n", keyringName(rs.version), file, key)
	}
	sources := fmt.Sprintf("%sTypes: deb\nURIs: %[2]s/deb/\nSuites: /\nSigned-By: %[3]s\n", about(at+"/deb/Release.key"), at, file)
	repo := fmt.Sprintf("%s[%[2]s]\nname=%[2]s\nbaseurl=%[3]s/rpm/\ngpgcheck=1\nrepo_gpgcheck=1\ngpgkey=file://%[4]s\n",
		about(at+"/rpm/repodata/repomd.xml.key"), usersName(rs.version), at, file)
	var pages []Page
	for i, content := range []string{sources, repo} {
		p, err := page(ctx, rs.channel, names[i], []byte(content))
		if err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	return pages, nil
}
