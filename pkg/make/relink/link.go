package relink

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"slipway.build/pkg/make/buildid"
	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/mechanism/goflag"
)

// argument is the first argument of this program when the go command calls it as its linker. The others are the folder for records, and
// the linker with its arguments.
const argument = "slipway-link"

// The go command calls a shell for each tool: a shell starts faster than this program, and other tools than the linker are started
// thousands of times. The words after the script are this program, the folder for records, and the tool with its arguments. If this
// program was removed while it runs, the shell calls the linker.
const script = `case $2 in */link) [ ! -x "$0" ] || exec "$0" ` + argument + ` "$@";; esac; shift; exec "$@"`

// Flag returns the flag that makes a go build link as this package does, and write records of its links into a folder. The error says why
// that is impossible.
func Flag(records string) (string, error) {
	if !linker {
		return "", errors.New("this program cannot be started as a linker")
	}
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

// Records returns the files in a folder of records, by the import paths of main packages. Programs that were linked as usual have none.
func Records(folder string) map[string]string {
	entries, _ := os.ReadDir(folder) // without records, programs are linked again
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

// newWay is the file in a folder of records that says that the go command computes build IDs in a new way.
const newWay = "new-way"

// Unknown returns why programs were linked as usual, if this package does not support the version of Go, or else "".
func Unknown(folder string) string {
	text, _ := os.ReadFile(filepath.Join(folder, newWay))
	return string(text)
}

// linker reports whether this program has called Main.
var linker bool

// Main links and exits if the go command started this program as its linker. Otherwise it returns, and [Flag] works from then on. A
// program calls it first in main.
func Main() {
	linker = true
	if len(os.Args) > 3 && os.Args[1] == argument {
		os.Exit(runLinker(os.Args[2], os.Args[3], os.Args[4:]))
	}
}

// runLinker does what the go command expects of its linker, and returns the exit code.
func runLinker(records, linker string, args []string) int {
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

// parse reads the arguments that the go command has for the linker: -o, -importcfg, flags of its own, -buildid, the flags of -ldflags,
// -extld, the main package (gcToolchain.ld in cmd/go/internal/work/gc.go).
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

// run calls the linker with placeholders, writes the real values into the output, and records where they are. It returns errUsual only
// before it has done anything.
func (k link) run(records string) error {
	name := os.Getenv("TOOLEXEC_IMPORTPATH")
	if name == "" {
		return errUsual
	}
	action, err := k.action(name)
	if errors.Is(err, errID) {
		_ = os.WriteFile(filepath.Join(records, newWay), []byte(err.Error()), 0o644) // only the message is lost
	}
	if err != nil {
		return errUsual // the linker says what is wrong with its files
	}
	args := slices.Clone(k.args)
	seed := action.ActionID()
	placeholders := make([]string, len(k.values)) // for the linker
	for i, at := range k.values {
		name, value, _ := strings.Cut(args[at], "=")
		placeholders[i] = random(seed+name, len(value))
		args[at] = name + "=" + placeholders[i]
	}
	if err := run(k.linker, args); err != nil {
		return err
	}
	data, err := os.ReadFile(k.output)
	if err != nil {
		return err
	}
	r := Record{Link: action}
	to, err := os.OpenFile(k.output, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for i, at := range k.values {
		v := Value{Offsets: buildid.Offsets(data, placeholders[i])}
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

// errID means that the go command computes build IDs in another way than package buildid.
var errID = errors.New("computes build IDs in a new way, so programs are linked again for each version, until package buildid knows it")

// action returns what the action ID of the link is a digest of. It is an error if the build ID does not begin with that digest.
func (k link) action(importPath string) (buildid.Link, error) {
	out, err := exec.Command(k.linker, "-V=full").Output()
	if err != nil {
		return buildid.Link{}, err
	}
	config, err := os.ReadFile(k.config)
	if err != nil {
		return buildid.Link{}, err
	}
	a := buildid.Link{
		Tool:     strings.TrimSpace(string(out)), // link version go1.26.8
		Platform: buildid.PlatformOf(os.Getenv("GOOS"), os.Getenv("GOARCH"), os.Getenv), ImportPath: importPath,
		GODEBUG: k.godebug, Mode: k.mode, Flags: k.flags, External: os.Getenv("GO_EXTLINK_ENABLED"),
	}
	for line := range strings.Lines(string(config)) {
		verb, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if verb != "packagefile" {
			continue
		}
		path, file, _ := strings.Cut(rest, "=")
		if path == "runtime/cgo" {
			return buildid.Link{}, errUsual // the linker of the C compiler is called
		}
		id, err := buildid.OfPackage(file)
		if err != nil {
			return buildid.Link{}, err
		}
		if file == k.args[len(k.args)-1] {
			a.Main = id
		} else {
			a.Packages = append(a.Packages, buildid.Package{ImportPath: path, Content: buildid.ContentOf(id)})
		}
	}
	if a.BuildID() != k.buildID {
		return buildid.Link{}, fmt.Errorf("%s: the go command %w", a.Tool, errID)
	}
	return a, nil
}
