package patched

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	gomod "golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
	"golang.org/x/sync/errgroup"

	"slipway.build/pkg/mechanism/atomicfile"
	"slipway.build/pkg/mechanism/checksum"
	"slipway.build/pkg/tree/module"
	"slipway.build/pkg/tree/patch"
)

// writeZip writes the zip of a patched module, and returns its h1 sum. Files that do not change keep their compressed bytes: compressing
// all of Kubernetes again would take longer than compiling what a patch changes.
func writeZip(ctx context.Context, file string, b *base, as module.Version, changes map[string]patch.Change,
	sumsFile string) (sum string, err error) {
	original, err := zip.OpenReader(b.Zip)
	if err != nil {
		return "", err
	}
	defer original.Close()
	known, err := knownSums(ctx, sumsFile, b, original)
	if err != nil {
		return "", err
	}
	members, err := membersOf(original, b.code.String()+"/", changes)
	if err != nil {
		return "", err
	}
	out, err := os.Create(file)
	if err != nil {
		return "", err
	}
	defer func() {
		if closeErr := out.Close(); err == nil {
			err = closeErr
		}
		if err == nil {
			// What the go command would refuse, such as names that differ in their case only.
			_, err = modzip.CheckZip(gomod.Version(as), file)
		}
	}()
	w := zip.NewWriter(out)
	for _, m := range members {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if err := m.write(w, as.String()+"/"+m.name); err != nil {
			return "", fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	lines := make([]string, len(members))
	for i, m := range members {
		sum := known[m.name]
		if m.old == nil {
			sum = fmt.Sprintf("%x", sha256.Sum256(m.data))
		}
		lines[i] = sumLine(sum, as, m.name)
	}
	return hash1(lines), nil
}

// A member is a file of a patched module.
type member struct {
	name string // in the module
	old  *zip.File
	data []byte // if old is nil
}

// membersOf returns the files of a module with changes, sorted by name.
func membersOf(original *zip.ReadCloser, prefix string, changes map[string]patch.Change) ([]member, error) {
	var members []member
	for _, f := range original.File {
		name, ok := strings.CutPrefix(f.Name, prefix)
		if !ok {
			return nil, fmt.Errorf("the module's zip holds %s, which is not below %s", f.Name, prefix)
		}
		if _, changed := changes[name]; !changed && !strings.HasSuffix(name, "/") {
			members = append(members, member{name: name, old: f})
		}
	}
	for name, c := range changes {
		if !c.Removed {
			members = append(members, member{name: name, data: c.Data})
		}
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return members, nil
}

func (m member) write(w *zip.Writer, name string) error {
	if m.old == nil {
		to, err := w.Create(name)
		if err == nil {
			_, err = to.Write(m.data)
		}
		return err
	}
	from, err := m.old.OpenRaw()
	if err != nil {
		return err
	}
	to, err := w.CreateRaw(&zip.FileHeader{
		Name: name, Method: m.old.Method, CRC32: m.old.CRC32,
		CompressedSize64: m.old.CompressedSize64, UncompressedSize64: m.old.UncompressedSize64,
	})
	if err == nil {
		_, err = io.Copy(to, from)
	}
	return err
}

// knownSums returns the SHA-256, in hex, of each file of a module, by name. A file keeps them for the next patch of the module: they are
// those whose sum go.sum has.
func knownSums(ctx context.Context, file string, b *base, original *zip.ReadCloser) (map[string]string, error) {
	if data, err := os.ReadFile(file); err == nil && hash1([]string{string(data)}) == b.Sum {
		return parseSums(data, b.code), nil
	}
	files := slices.DeleteFunc(slices.Clone(original.File), func(f *zip.File) bool { return strings.HasSuffix(f.Name, "/") })
	slices.SortFunc(files, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	lines := make([]string, len(files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, f := range files {
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			sum, err := sumOfFile(f)
			if err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
			lines[i] = sum + "  " + f.Name + "\n"
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if sum := hash1(lines); sum != b.Sum {
		return nil, fmt.Errorf("%s: its sum is %s, but it was downloaded as %s", b.Zip, sum, b.Sum)
	}
	data := []byte(strings.Join(lines, ""))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return nil, err
	}
	return parseSums(data, b.code), atomicfile.WriteFile(file, data, 0o666)
}

func sumOfFile(f *zip.File) (string, error) {
	r, err := f.Open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	sum, _, err := checksum.SHA256(r)
	return sum, err
}

// sumLine returns the line about a file in what an h1 sum is of: see golang.org/x/mod/sumdb/dirhash.
func sumLine(sum string, of module.Version, name string) string {
	return sum + "  " + of.String() + "/" + name + "\n"
}

// hash1 returns the h1 sum of lines.
func hash1(lines []string) string {
	all := sha256.Sum256([]byte(strings.Join(lines, "")))
	return "h1:" + base64.StdEncoding.EncodeToString(all[:])
}

// parseSums returns the sums in lines, by the names of files in the module.
func parseSums(data []byte, of module.Version) map[string]string {
	sums := map[string]string{}
	for line := range strings.Lines(string(data)) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		sums[strings.TrimPrefix(name, of.String()+"/")] = sum
	}
	return sums
}

// infoOf returns the description of a patched version: the time is that of the original.
func infoOf(b *base, as module.Version) ([]byte, error) {
	var info map[string]any
	data, err := os.ReadFile(b.Info)
	if err == nil {
		err = json.Unmarshal(data, &info)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"Version": as.Version, "Time": info["Time"]})
}
