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

// usersPages returns these files. That for apt has the keys in it; dnf shows the key, and asks whether it is the right one.
func (rs *packages) usersPages(ctx context.Context) ([]Page, error) {
	names := rs.usersFiles()
	if names == nil {
		return nil, nil
	}
	at := rs.URL + "/" + rs.folder
	public, err := rs.Keys.Public()
	if err != nil {
		return nil, err
	}
	sources := "Types: deb\nURIs: " + at + "/deb/\nSuites: /\nSigned-By:\n"
	for line := range strings.Lines(string(public)) {
		if strings.TrimSpace(line) == "" {
			line = ".\n"
		}
		sources += " " + line
	}
	repo := fmt.Sprintf("[%[1]s]\nname=%[1]s\nbaseurl=%[2]s/rpm/\ngpgcheck=1\nrepo_gpgcheck=1\ngpgkey=%[2]s/rpm/repodata/repomd.xml.key\n",
		usersName(rs.version), at)
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
