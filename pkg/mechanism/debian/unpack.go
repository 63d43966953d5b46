package debian

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"slipway.build/pkg/mechanism/archive"
)

// maxUnpacked is a limit that the files of no package reach, in bytes.
const maxUnpacked = 1 << 30

// unneeded are folders of packages that no program in an image reads. Copyright files among them are kept: see isOwed.
var unneeded = []string{
	"usr/share/bug/", "usr/share/doc/", "usr/share/doc-base/", "usr/share/info/", "usr/share/lintian/", "usr/share/locale/", "usr/share/man/",
}

// StatusFolder has what is known of packages, a file for each: where scanners look for packages in an image that nothing was installed
// in by dpkg. See github.com/GoogleContainerTools/distroless.
const StatusFolder = "var/lib/dpkg/status.d/"

// SumsSuffix is at the end of the name of a file there that lists the files of a package, in the form of md5sum.
const SumsSuffix = ".md5sums"

// Unpack reads the files and links in packages' .deb files into memory, without documentation, and for each package the file that says
// which it is. It executes nothing, so the caller must do what packages do when they are installed, such as choosing alternatives.
func Unpack(files []string) ([]archive.Entry, error) {
	var all []archive.Entry
	for _, file := range files {
		entries, err := unpack(file, maxUnpacked)
		if err != nil {
			return nil, fmt.Errorf("unpack %s: %w", file, err)
		}
		all = append(all, entries...)
	}
	return all, nil
}

func unpack(file string, limit int64) ([]archive.Entry, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var entries []archive.Entry
	for _, part := range []struct {
		member string
		read   func(io.Reader) ([]archive.Entry, error)
	}{{"data.tar", readData}, {"control.tar", readControl}} {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		name, data, err := memberOf(f, part.member)
		if err != nil {
			return nil, err
		}
		plain, err := decompress(name, data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found, err := part.read(&limited{plain, limit})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		entries = append(entries, found...)
	}
	return entries, nil
}

const (
	arMagic  = "!<arch>\n"
	arHeader = 60 // bytes: name 16, time 12, owner 6, group 6, mode 8, size 10, end 2
	arEnd    = "`\n"
)

// memberOf finds a member of a .deb: control.tar, which says what the package is, or data.tar with its files, each with the suffix of
// its compression. A .deb is an ar archive.
func memberOf(r io.Reader, prefix string) (name string, data io.Reader, err error) {
	magic := make([]byte, len(arMagic))
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != arMagic {
		return "", nil, errors.New("it is not a Debian package: it does not begin as one")
	}
	for {
		header := make([]byte, arHeader)
		if _, err := io.ReadFull(r, header); err != nil {
			return "", nil, errors.New("it is not a Debian package: it has no " + prefix)
		}
		size, err := strconv.ParseInt(strings.TrimRight(string(header[48:58]), " "), 10, 64)
		if err != nil || size < 0 || string(header[58:]) != arEnd {
			return "", nil, errors.New("it is not a Debian package: the header of a member is broken")
		}
		name := strings.TrimRight(strings.TrimRight(string(header[:16]), " "), "/")
		if strings.HasPrefix(name, prefix) {
			return name, io.LimitReader(r, size), nil
		}
		if _, err := io.CopyN(io.Discard, r, size+size%2); err != nil { // members begin at even bytes
			return "", nil, fmt.Errorf("it is cut short in its member %s", name)
		}
	}
}

func decompress(name string, r io.Reader) (io.Reader, error) {
	switch path.Ext(name) {
	case ".xz":
		return xz.NewReader(r)
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	case ".gz":
		return gzip.NewReader(r)
	case ".tar":
		return r, nil
	}
	return nil, errors.New("unknown compression, want xz, zst or gz")
}

// A limited reader fails after a number of bytes: a small package can unpack to any size.
type limited struct {
	io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, errors.New("it is too large when unpacked")
	}
	return n, err
}

// readControl reads the file that says which package it is, and the one with the sums of its files, if there is one.
func readControl(r io.Reader) ([]archive.Entry, error) {
	files := map[string][]byte{}
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		name := path.Clean(h.Name)
		if name != "control" && name != "md5sums" || h.Typeflag != tar.TypeReg {
			continue
		}
		if files[name], err = io.ReadAll(t); err != nil {
			return nil, err
		}
	}
	control, ok := files["control"]
	if !ok {
		return nil, errors.New("it has no file control")
	}
	fields, err := fieldsIn(bytes.NewReader(control)).ReadMIMEHeader()
	name := fields.Get("Package")
	if err != nil && err != io.EOF || !packageName.MatchString(name) {
		return nil, errors.New("control names no package")
	}
	entries := []archive.Entry{{Name: StatusFolder + name, Mode: 0o644, Data: control}}
	if sums, ok := files["md5sums"]; ok {
		entries = append(entries, archive.Entry{Name: StatusFolder + name + SumsSuffix, Mode: 0o644, Data: sums})
	}
	return entries, nil
}

// readData reads the files and links that are needed. Links are not changed, not even absolute ones: nothing here follows
// them, and in an image they lead to a file in the image.
func readData(r io.Reader) ([]archive.Entry, error) {
	var entries []archive.Entry
	files := map[string][]byte{}
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		name, err := clean(h.Name)
		if err != nil {
			return nil, err
		}
		e := archive.Entry{Name: name, Mode: h.FileInfo().Mode() &^ fs.ModeSetuid} // no package makes a user of an image root
		switch h.Typeflag {
		case tar.TypeDir:
			continue
		case tar.TypeReg:
			var data bytes.Buffer
			if _, err := io.Copy(&data, t); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			e.Data = data.Bytes()
		case tar.TypeLink:
			to, err := clean(h.Linkname)
			if err != nil {
				return nil, err
			}
			data, ok := files[to]
			if !ok {
				return nil, fmt.Errorf("%s is the same file as %s, which is not before it", name, to)
			}
			e.Data, e.Mode = data, e.Mode.Perm()
		case tar.TypeSymlink:
			if to := path.Join(path.Dir(name), h.Linkname); !path.IsAbs(h.Linkname) && !fs.ValidPath(to) {
				return nil, fmt.Errorf("%s links to %s, outside of the package", name, h.Linkname)
			}
			e.Link, e.Mode = h.Linkname, fs.ModeSymlink|0o777
		default:
			return nil, fmt.Errorf("%s has the type %q, which images here do not have", name, h.Typeflag)
		}
		files[name] = e.Data
		if isNeeded(name) || isOwed(name, e.Link != "") {
			entries = append(entries, e)
		}
	}
}

// clean makes a member's name relative to the root. A name that leads out of the root is an error.
func clean(name string) (string, error) {
	rel := strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
	if rel == "" {
		rel = "."
	}
	if !fs.ValidPath(rel) {
		return "", fmt.Errorf("%q leads out of the package", name)
	}
	return rel, nil
}

// isNeeded also leaves out half of the C library: conversions between character sets.
func isNeeded(name string) bool {
	if strings.HasPrefix(name, "usr/lib/") && strings.Contains(name, "/gconv/") {
		return false
	}
	for _, folder := range unneeded {
		if strings.HasPrefix(name, folder) {
			return false
		}
	}
	return true
}

// isOwed reports whether a file must go with the package: its copyright file, or the link to a documentation folder that
// several packages share.
func isOwed(name string, link bool) bool {
	rest, ok := strings.CutPrefix(name, docs)
	return ok && (path.Base(name) == "copyright" || link && !strings.Contains(rest, "/"))
}
