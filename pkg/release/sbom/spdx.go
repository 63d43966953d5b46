package sbom

import (
	"cmp"
	"crypto/sha1" //nolint:gosec // SPDX wants it; nothing rests on it
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// noAssertion says, in SPDX, that something is not known.
const noAssertion = "NOASSERTION"

// SPDX returns the document as SPDX 2.3, in JSON. See https://spdx.github.io/spdx-spec/v2.3/.
func (d *Document) SPDX() ([]byte, error) {
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: d.Name,
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "slipway"}}, Created: d.Created.Format(time.RFC3339),
		},
	}
	relate := func(from, to, kind string) {
		doc.Relationships = append(doc.Relationships, &spdx.Relationship{
			RefA: common.MakeDocElementID("", from), RefB: common.MakeDocElementID("", to), Relationship: kind,
		})
	}
	relate("DOCUMENT", d.Components[0].ID, common.TypeRelationshipDescribe)
	for _, c := range d.Components {
		doc.Packages = append(doc.Packages, c.spdx())
	}
	doc.OtherLicenses = d.otherLicenses()
	for _, r := range d.Relations {
		relate(r.From.ID, r.To.ID, spdxRelations[r.Kind])
	}
	d.spdxFiles(doc, relate)
	// The namespace tells apart any two documents that differ.
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(doc); err != nil {
		return nil, err
	}
	doc.DocumentNamespace = fmt.Sprintf("https://slipway.build/spdx/%s-%x", d.Name, h.Sum(nil)[:16])
	data, err := json.MarshalIndent(doc, "", " ")
	return append(data, '\n'), err
}

var spdxRelations = map[Kind]string{
	Contains: common.TypeRelationshipContains,
	Links:    common.TypeRelationshipDependsOn,
	MadeOf:   common.TypeRelationshipGeneratedFrom,
	BuiltBy:  common.TypeRelationshipDependsOn,
	Patches:  common.TypeRelationshipPatchApplied,
	Describe: common.TypeRelationshipContains,
}

var spdxPurposes = map[Type]string{
	Product: "INSTALL", Archive: "ARCHIVE", Program: "APPLICATION", Image: "CONTAINER", Layer: "ARCHIVE", Library: "LIBRARY",
	// The schema of SPDX in JSON has OPERATING_SYSTEM, where the text of the standard has a hyphen.
	Package: "LIBRARY", System: "OPERATING_SYSTEM", Compiler: "APPLICATION", Sources: "SOURCE", Patch: "FILE",
}

func (c *Component) spdx() *spdx.Package {
	p := &spdx.Package{
		PackageName: c.Name, PackageSPDXIdentifier: common.ElementID(c.ID), PackageVersion: c.Version, PackageFileName: c.FileName,
		PackageDownloadLocation: noAssertion, PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: noAssertion,
		PackageCopyrightText: noAssertion, PrimaryPackagePurpose: spdxPurposes[c.Type],
	}
	if c.License != "" {
		p.PackageLicenseDeclared = c.License
	}
	if c.LicenseFile != "" {
		p.PackageLicenseComments = "The terms are in " + c.LicenseFile + " of the tarballs."
	}
	for _, sum := range []common.Checksum{{Algorithm: common.SHA256, Value: c.SHA256}, {Algorithm: common.SHA512, Value: c.SHA512}} {
		if sum.Value != "" {
			p.PackageChecksums = append(p.PackageChecksums, sum)
		}
	}
	if c.PURL != "" {
		p.PackageExternalReferences = []*spdx.PackageExternalReference{
			{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: c.PURL},
		}
	}
	var info []string
	if c.Sum != "" {
		info = append(info, "go.sum: "+c.Sum)
	}
	if c.Replaces != "" {
		info = append(info, "in place of "+c.Replaces)
	}
	if c.Repository != "" {
		info = append(info, "made of the git repository "+c.Repository+"@"+c.Commit)
	}
	if c.Override != "" {
		info = append(info, c.Override)
	}
	p.PackageSourceInfo = strings.Join(info, "; ")
	return p
}

var licenseRef = regexp.MustCompile(`LicenseRef-[A-Za-z0-9.-]+`)

// otherLicenses describes the licenses that components have and SPDX' list does not. The standard wants a text for each; that is in a file
// which has more than this text.
func (d *Document) otherLicenses() []*spdx.OtherLicense {
	texts := map[string]string{}
	for _, c := range d.Components {
		for _, ref := range licenseRef.FindAllString(c.License, -1) {
			if texts[ref] == "" {
				texts[ref] = "See " + cmp.Or(c.LicenseFile, "the license of "+c.Name) + "."
			}
		}
	}
	var all []*spdx.OtherLicense
	for _, ref := range slices.Sorted(maps.Keys(texts)) {
		all = append(all, &spdx.OtherLicense{LicenseIdentifier: ref, ExtractedText: texts[ref]})
	}
	return all
}

// spdxFiles adds the files of the first component.
func (d *Document) spdxFiles(doc *spdx.Document, relate func(from, to, kind string)) {
	if len(d.Files) == 0 {
		return
	}
	var sums []string
	for _, f := range d.Files {
		name := sha256.Sum256([]byte(f.Name))
		id := "file-" + hex.EncodeToString(name[:10])
		doc.Files = append(doc.Files, &spdx.File{
			FileName: "./" + f.Name, FileSPDXIdentifier: common.ElementID(id), LicenseConcluded: noAssertion, FileCopyrightText: noAssertion,
			LicenseInfoInFiles: []string{noAssertion},
			Checksums:          []common.Checksum{{Algorithm: common.SHA1, Value: f.SHA1}, {Algorithm: common.SHA256, Value: f.SHA256}},
		})
		relate(d.Components[0].ID, id, common.TypeRelationshipContains)
		sums = append(sums, f.SHA1)
	}
	// SPDX 2.3, 7.9: the SHA-1 of all files' SHA-1, sorted.
	slices.Sort(sums)
	code := sha1.New() //nolint:gosec // as SPDX wants it
	_, _ = io.WriteString(code, strings.Join(sums, ""))
	p := doc.Packages[0]
	p.FilesAnalyzed, p.IsFilesAnalyzedTagPresent = true, true
	p.PackageVerificationCode = &common.PackageVerificationCode{Value: hex.EncodeToString(code.Sum(nil))}
	p.PackageLicenseInfoFromFiles = []string{noAssertion}
}
