package relink

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"slipway.build/pkg/mechanism/child"
)

func init() {
	if len(os.Args) > 4 && os.Args[1] == argument {
		os.Exit(called(Links{Folder: os.Args[2], Scratch: os.Args[3]}, os.Args[4], os.Args[5:]))
	}
}

// called does what the go command wants from its linker, and returns the exit code.
func called(l Links, linker string, args []string) int {
	k, err := parse(linker, args)
	if err == nil {
		err = l.link(k)
	}
	if errors.Is(err, errUsual) {
		err = run(linker, args)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode() // the linker has said why
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "slipway:", err)
		return 1
	}
	return 0
}

func run(linker string, args []string) error {
	cmd := exec.Command(linker, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return child.Run(cmd, syscall.SIGKILL, nil)
}

// errUsual means that the linker is to be called with the arguments of the go command.
var errUsual = errors.New("to be linked as usual")

// A link is a call of the linker.
type link struct {
	linker  string
	args    []string
	output  string
	config  string // the file with the packages
	buildID string
	values  []value // strings that are long enough, without offsets
	at      []int   // where args has the flags of values
}

// shortest is the length of strings, in bytes, from which random ones are certain to be found only where they were put. Shorter strings are
// part of the key.
const shortest = 16

// parse reads the arguments that the go command has for the linker (gcToolchain.ld in cmd/go/internal/work/gc.go).
func parse(linker string, args []string) (link, error) {
	k := link{linker: linker, args: args}
	for i := 0; i < len(args); i++ {
		if i+1 < len(args) {
			switch args[i] {
			case "-o":
				i++
				k.output = args[i]
				continue
			case "-importcfg":
				i++
				k.config = args[i]
				continue
			case "-X":
				i++
				if name, text, _ := strings.Cut(args[i], "="); len(text) >= shortest {
					k.values = append(k.values, value{Name: name, Text: text})
					k.at = append(k.at, i)
				}
				continue
			}
		}
		switch name, set, _ := strings.Cut(args[i], "="); name {
		case "-buildid":
			k.buildID = set
		case "-buildmode":
			if set != "exe" && set != "pie" {
				return link{}, errUsual
			}
		case "-linkmode", "-fipso", "-pluginpath", "-race", "-msan", "-asan", "-B":
			return link{}, errUsual
		}
	}
	if k.output == "" || k.config == "" || len(k.buildID) < shortest || len(k.values) == 0 {
		return link{}, errUsual
	}
	return k, nil
}

// environment has the variables that the linker reads.
var environment = []string{
	"GOOS", "GOARCH", "GOROOT", "GOEXPERIMENT", "GODEBUG", "GOFIPS140", "GO_EXTLINK_ENABLED",
	"GO386", "GOAMD64", "GOARM", "GOARM64", "GOMIPS", "GOMIPS64", "GOPPC64", "GORISCV64", "GOWASM",
}

// key returns the SHA-256, in hex, of all that decides what is linked, but for the values and the build ID, of which it has the lengths.
func (k link) key() (string, error) {
	info, err := os.Stat(k.linker)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "link 1\n%q %d %s\n", k.linker, info.Size(), info.ModTime())
	for _, name := range environment {
		fmt.Fprintf(h, "%s=%q\n", name, os.Getenv(name))
	}
	values := k.values
	for i, arg := range k.args[:len(k.args)-1] {
		switch {
		case slices.Contains(k.at, i):
			fmt.Fprintf(h, "%q is a string of %d bytes\n", values[0].Name, len(values[0].Text))
			values = values[1:]
		case arg == k.output || arg == k.config:
		case strings.HasPrefix(arg, "-buildid="):
			fmt.Fprintf(h, "build ID of %d bytes\n", len(arg))
		default:
			fmt.Fprintf(h, "%q\n", arg)
		}
	}
	if err := hashPackage(h, "main", k.args[len(k.args)-1]); err != nil {
		return "", err
	}
	config, err := os.ReadFile(k.config)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(config)) {
		verb, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		path, file, _ := strings.Cut(rest, "=")
		switch {
		case verb != "packagefile":
			_, err = fmt.Fprintf(h, "%q\n", line)
		case path == "runtime/cgo":
			err = errUsual // the linker of the C compiler is called
		default:
			err = hashPackage(h, path, file)
		}
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashPackage writes a package's content ID, the part of its build ID that the go command computes from the compiled package, as the go
// command does for the action ID of a link.
func hashPackage(h io.Writer, path, file string) error {
	id, err := packageID(file)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(h, "package %q %s\n", path, id[strings.LastIndexByte(id, '/')+1:])
	return err
}

// packageID returns the build ID of a compiled package. The file is an archive that begins with the package's export data, and that begins
// with lines of text (cmd/internal/buildid).
func packageID(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	start := make([]byte, 1024)
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	_, rest, _ := bytes.Cut(start[:n], []byte("\nbuild id "))
	line, _, ended := bytes.Cut(rest, []byte("\n"))
	id, err := strconv.Unquote(string(line))
	if err != nil || !ended || !strings.Contains(id, "/") {
		return "", fmt.Errorf("%s: no build ID", file)
	}
	return id, nil
}

// link makes the output: from a program that was linked before, or else by the linker. It returns errUsual before it has done anything.
func (l Links) link(k link) error {
	name := os.Getenv("TOOLEXEC_IMPORTPATH")
	key, err := k.key()
	if name == "" || err != nil {
		return errUsual // the linker says what is wrong with its files
	}
	p, err := k.copy(l.place(name, key))
	if err != nil {
		// There is none, it was changed, or the disk is full. In each case the linker knows better.
		if p, err = k.run(key); err != nil || len(p.IDs) == 0 {
			return err
		}
	}
	p.Package, p.Key = name, key
	return p.write(filepath.Join(l.Scratch, key+".json"))
}

// copy makes the output from the program in a folder.
func (k link) copy(dir string) (program, error) {
	p, err := read(filepath.Join(dir, recordFile))
	if err != nil {
		return program{}, err
	}
	from, err := os.Open(filepath.Join(dir, programFile))
	if err != nil {
		return program{}, err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return program{}, err
	}
	if info.Size() != p.Size || !info.ModTime().Equal(p.Modified) || len(p.Values) != len(k.values) {
		return program{}, errors.New("the program has changed since")
	}
	to, err := os.OpenFile(k.output, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o777)
	if err != nil {
		return program{}, err
	}
	_, err = io.Copy(to, from)
	for i := range p.Values {
		p.Values[i].Text = k.values[i].Text
		err = errors.Join(err, writeAt(to, p.Values[i].Text, p.Values[i].Offsets))
	}
	err = errors.Join(err, writeAt(to, k.buildID, p.IDs), writeAt(to, hostID(p.Format, k.buildID), p.HostIDs), to.Close())
	p.Copied = true
	return p, err
}

// run calls the linker with other values, and writes the real ones into the output. The program that it returns has no IDs if it cannot be
// copied.
func (k link) run(key string) (program, error) {
	args := slices.Clone(k.args)
	found := make([]string, len(k.values)) // what the linker gets instead of the values
	for i, v := range k.values {
		found[i] = random(key+v.Name, len(v.Text))
		args[k.at[i]] = v.Name + "=" + found[i]
	}
	if err := run(k.linker, args); err != nil {
		return program{}, err
	}
	data, err := os.ReadFile(k.output)
	if err != nil {
		return program{}, err
	}
	p := program{Format: format(data), Size: int64(len(data)), Values: slices.Clone(k.values)}
	to, err := os.OpenFile(k.output, os.O_WRONLY, 0)
	if err != nil {
		return program{}, err
	}
	for i := range p.Values {
		p.Values[i].Offsets = offsets(data, found[i])
		err = errors.Join(err, writeAt(to, p.Values[i].Text, p.Values[i].Offsets))
	}
	if err := errors.Join(err, to.Close()); err != nil {
		return program{}, err
	}
	host := hostID(p.Format, k.buildID)
	p.HostIDs = offsets(data, host)
	if p.Format == other || host != "" && len(p.HostIDs) != 1 {
		return program{}, nil
	}
	p.IDs = offsets(data, k.buildID)
	return p, nil
}

// random returns a string of n bytes that depends on a seed. Since the seed depends on all packages, none of them contains it.
func random(seed string, n int) string {
	sum := sha256.Sum256([]byte(seed))
	text := hex.EncodeToString(sum[:])
	return strings.Repeat(text, n/len(text)+1)[:n]
}

// offsets returns where data has a string, which is not empty, or none if it is.
func offsets(data []byte, s string) []int64 {
	var found []int64
	for at := 0; s != ""; at += len(s) {
		i := bytes.Index(data[at:], []byte(s))
		if i < 0 {
			break
		}
		at += i
		found = append(found, int64(at))
	}
	return found
}

func writeAt(w io.WriterAt, s string, offsets []int64) error {
	for _, at := range offsets {
		if _, err := w.WriteAt([]byte(s), at); err != nil {
			return err
		}
	}
	return nil
}

// The formats of programs.
const (
	other = ""
	elf   = "ELF"
	macho = "Mach-O"
	pe    = "PE"
)

func format(data []byte) string {
	for start, format := range map[string]string{"\x7fELF": elf, "\xcf\xfa\xed\xfe": macho, "MZ": pe} {
		if bytes.HasPrefix(data, []byte(start)) {
			return format
		}
	}
	return other
}

// hostID returns what the linker derives from a build ID: the GNU build ID of an ELF file, the UUID of a Mach-O file (addbuildinfo and
// uuidFromGoBuildId in cmd/link/internal/ld, Sum32 in cmd/internal/hash). A PE file has none. If another version of Go derives it
// differently, it is not found in what the linker makes.
func hostID(format, buildID string) string {
	sum := sha256.Sum256([]byte(buildID))
	sum[0] ^= 0xff
	switch format {
	case elf:
		return string(sum[:20])
	case macho:
		sum[6] = sum[6]&0x0f | 0x30 // version 3
		sum[8] = sum[8]&0x3f | 0xc0 // variant of RFC 4122
		return string(sum[:16])
	}
	return ""
}
