package relink

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/mechanism/goflag"
)

// argument is the first argument of this program where the go command calls it for a link. The others are the folder for records, and the
// linker with its arguments.
const argument = "slipway-link"

// The go command calls a shell for each tool, since a shell starts faster than this program, and all tools but the linker are started thousands of
// times. The words that follow the script are this program, the folder for records, and the tool with its arguments. If this program was removed
// while it runs, the linker is called.
const script = `case $2 in */link) [ ! -x "$0" ] || exec "$0" ` + argument + ` "$@";; esac; shift; exec "$@"`

// Flag returns the flag by which a go build links as this package does, and writes the records of its links into a folder. The error says why
// that is not possible on this machine.
func Flag(records string) (string, error) {
	if runtime.GOOS == "windows" {
		return "", errors.New("no POSIX shell on Windows")
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		return "", err
	}
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	words := []string{shell, "-c", script, program, records}
	for i, w := range words {
		if words[i], err = goflag.Quote(w); err != nil {
			return "", err
		}
	}
	return "-toolexec=" + strings.Join(words, " "), nil
}

// Records returns the files in a folder of records, by the import paths of main packages. A program that was linked as usual has none, and all are if the
// folder cannot be read.
func Records(folder string) map[string]string {
	entries, _ := os.ReadDir(folder)
	files := map[string]string{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), recordSuffix)
		if importPath, err := url.PathUnescape(name); ok && err == nil {
			files[importPath] = filepath.Join(folder, e.Name())
		}
	}
	return files
}

const recordSuffix = ".json"

func init() {
	if len(os.Args) > 3 && os.Args[1] == argument {
		os.Exit(called(os.Args[2], os.Args[3], os.Args[4:]))
	}
}

// called does what the go command wants from its linker, and returns the exit code.
func called(records, linker string, args []string) int {
	k, err := parse(linker, args)
	if err == nil {
		err = k.run(records)
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
	mode    string   // -buildmode
	godebug string   // the default for GODEBUG
	flags   []string // those of -ldflags
	values  []int    // where args has "name=value" of -X with a long value
}

// parse reads the arguments that the go command has for the linker: -o, -importcfg, flags of its own, -buildid, the flags of -ldflags, -extld, the
// main package (gcToolchain.ld in cmd/go/internal/work/gc.go).
func parse(linker string, args []string) (link, error) {
	k := link{linker: linker, args: args}
	first, last := -1, -1
	names := map[string]bool{} // of variables
	for i := 0; i < len(args); i++ {
		name, set, _ := strings.Cut(args[i], "=")
		switch name {
		case "-o", "-importcfg", "-X":
			if set != "" {
				if value, ok := strings.CutPrefix(set, "runtime.godebugDefault="); ok {
					k.godebug = value
				}
				continue
			}
			if i++; i == len(args) {
				return link{}, errUsual
			}
			switch name {
			case "-o":
				k.output = args[i]
			case "-importcfg":
				k.config = args[i]
			default:
				name, value, _ := strings.Cut(args[i], "=")
				if names[name] || first < 0 {
					return link{}, errUsual
				}
				if names[name] = true; len(value) >= Shortest {
					k.values = append(k.values, i)
				}
			}
		case "-buildid":
			k.buildID, first = set, i+1
		case "-extld":
			last = i
		case "-buildmode":
			k.mode = set
		case "-linkmode", "-fipso", "-pluginpath", "-race", "-msan", "-asan", "-B":
			return link{}, errUsual
		}
	}
	if k.output == "" || k.config == "" || strings.Count(k.buildID, "/") != 3 || len(k.values) == 0 || last < first || last != len(args)-2 ||
		k.mode != "exe" && k.mode != "pie" {
		return link{}, errUsual
	}
	k.flags = args[first:last]
	return k, nil
}

// run calls the linker with other values, writes the real ones into the output, and records where they are. It returns errUsual before it has
// done anything.
func (k link) run(records string) error {
	name := os.Getenv("TOOLEXEC_IMPORTPATH")
	if name == "" {
		return errUsual
	}
	action, err := k.action(name)
	if err != nil {
		return errUsual // the linker says what is wrong with its files
	}
	args := slices.Clone(k.args)
	others := make([]string, len(k.values)) // what the linker gets instead of the values
	for i, at := range k.values {
		name, value, _ := strings.Cut(args[at], "=")
		others[i] = random(action.After+name, len(value))
		args[at] = name + "=" + others[i]
	}
	if err := run(k.linker, args); err != nil {
		return err
	}
	data, err := os.ReadFile(k.output)
	if err != nil {
		return err
	}
	r := Record{Action: action, Size: int64(len(data))}
	to, err := os.OpenFile(k.output, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for i, at := range k.values {
		v := Value{Offsets: offsets(data, others[i])}
		v.Name, v.Text, _ = strings.Cut(k.args[at], "=")
		r.Values = append(r.Values, v)
		for _, at := range v.Offsets {
			_, failed := to.WriteAt([]byte(v.Text), at)
			err = errors.Join(err, failed)
		}
	}
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	if r.find(data, k.buildID) == nil {
		_ = r.write(filepath.Join(records, url.PathEscape(name)+recordSuffix)) // the program is whole without a record
	}
	return nil
}

// random returns a string of n bytes that depends on a seed. Since the seed depends on all packages, none of them contains it.
func random(seed string, n int) string {
	sum := sha256.Sum256([]byte(seed))
	text := base64.RawURLEncoding.EncodeToString(sum[:])
	return strings.Repeat(text, n/len(text)+1)[:n]
}

// offsets returns where data has a string that is not empty.
func offsets(data []byte, s string) []int64 {
	var found []int64
	for at := 0; ; at += len(s) {
		i := bytes.Index(data[at:], []byte(s))
		if i < 0 {
			return found
		}
		at += i
		found = append(found, int64(at))
	}
}

// levels has, by architecture, the variable that says what a processor must be able to do.
var levels = map[string]string{
	"386": "GO386", "amd64": "GOAMD64", "arm": "GOARM", "arm64": "GOARM64", "mips": "GOMIPS", "mipsle": "GOMIPS", "mips64": "GOMIPS64",
	"mips64le": "GOMIPS64", "ppc64": "GOPPC64", "ppc64le": "GOPPC64", "riscv64": "GORISCV64", "wasm": "GOWASM",
}

// action returns what the action ID of the link is a digest of (linkActionID in cmd/go/internal/work/exec.go). It is an error if the build ID
// does not begin with that digest.
func (k link) action(importPath string) (Action, error) {
	out, err := exec.Command(k.linker, "-V=full").Output()
	if err != nil {
		return Action{}, err
	}
	tool := strings.TrimSpace(string(out)) // link version go1.26.8
	fields := strings.Fields(tool)
	config, err := os.ReadFile(k.config)
	if err != nil {
		return Action{}, err
	}
	if len(fields) < 3 {
		return Action{}, fmt.Errorf("the linker calls itself %q", tool)
	}
	goos, goarch := os.Getenv("GOOS"), os.Getenv("GOARCH")
	var before, after strings.Builder
	before.WriteString(fields[2]) // the salt of the go command's digests
	fmt.Fprintf(&before, "link\nbuildmode default goos %s goarch %s\nimport %q\n", goos, goarch, importPath)
	fmt.Fprintf(&before, "omitdebug false standard false local false prefix \"\"\ndefaultgodebug %q\ntrimpath\nlink %s [] %s\n", k.godebug, tool, k.mode)
	fmt.Fprintf(&after, "%s=%s\nGOROOT=\nGO_EXTLINK_ENABLED=%s\n", levels[goarch], os.Getenv(levels[goarch]), os.Getenv("GO_EXTLINK_ENABLED"))
	for line := range strings.Lines(string(config)) {
		verb, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if verb != "packagefile" {
			continue
		}
		path, file, _ := strings.Cut(rest, "=")
		if path == "runtime/cgo" {
			return Action{}, errUsual // the linker of the C compiler is called
		}
		id, err := packageID(file)
		if err != nil {
			return Action{}, err
		}
		fmt.Fprintf(&after, "packagefile %s=%s\n", path, id[strings.LastIndexByte(id, '/')+1:])
		if file == k.args[len(k.args)-1] {
			fmt.Fprintf(&after, "packagemain %s\n", id)
		}
	}
	a := Action{Before: before.String(), Flags: k.flags, After: after.String()}
	if !strings.HasPrefix(k.buildID, a.id()+"/") {
		return Action{}, errors.New("the go command computes its action ID differently")
	}
	return a, nil
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
