package transfer

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// User is the user name that the daemon must accept: `auth users = slipway`.
const User = "slipway"

// A Dial opens a connection to a new process `rsync --server --daemon`. It must give up when ctx is done; ctx lasts as long as
// the connection is needed. Closing the connection must end pending calls of Read and Write. The error of Close or Read may be
// what the remote end wrote to stderr. A method CloseWrite() error of the connection, if it has one, ends the stream to the
// remote end.
type Dial func(ctx context.Context) (io.ReadWriteCloser, error)

// A Remote is an rsync daemon at the other end of a stream. Each call makes a connection of its own.
type Remote struct {
	Dial     Dial
	Password string // of User

	// Whole sends whole files rather than differences, which is less work for both ends if there is no network between them.
	Whole bool

	// Patience is how long the stream may be silent. 0 means 30 seconds, and 10 seconds for the greeting.
	Patience time.Duration
}

// Stats says what a call has moved.
type Stats struct {
	Files          int   // regular files that traveled, or were copied from a basis
	Deleted        int   // files of any kind, and folders; 0 with a daemon older than 3.4.4, which does not report it
	Sent, Received int64 // bytes, including rsync's protocol
}

// always holds the flags of every call. None depends on the user's settings.
var always = []string{
	"--links", "--perms", "--times",
	"--modify-window=-1", // compare times to the nanosecond
	"--chmod=Du+rwx",     // see Modes in the package comment
	"--from0",            // names and rules end in a NUL, as newlines may be in them
	"--stats", "--no-human-readable", "--no-motd",
	"--8-bit-output", // do not escape names in errors
	// The daemon must send errors through the protocol. By default a daemon without a socket writes them to its own stderr, and
	// a file that it could not write would count as written. (An rsync before 3.2.3 does not pass on its own flag.)
	"--remote-option=--no-msgs2stderr",
}

// Flags of each kind of call.
var (
	mirrorFlags = []string{"--recursive", "--checksum", "--delete", "--filter=merge -"} // rules on the input
	addFlags    = []string{"--files-from=-"}                                            // names on the input
	fetchFlags  = []string{"--recursive", "--files-from=-", "--safe-links"}             // names on the input
)

// MirrorArgs returns the arguments with which Mirror runs rsync, by a port of its tunnel.
func (r *Remote) MirrorArgs(port int, module string) []string {
	return r.args(transfer{module: module, send: true, flags: mirrorFlags}, port)
}

// AddArgs returns the arguments with which Add runs rsync.
func (r *Remote) AddArgs(port int, module string) []string {
	return r.args(transfer{module: module, send: true, flags: addFlags}, port)
}

// FetchArgs returns the arguments with which Fetch runs rsync, without a basis.
func (r *Remote) FetchArgs(port int, module string) []string {
	return r.args(transfer{module: module, flags: fetchFlags}, port)
}

// Mirror makes the module hold exactly these files of the local folder dir. It sends changed files and deletes the rest, except
// at or below the protected paths. All names and paths are relative to dir and slash-separated.
func (r *Remote) Mirror(ctx context.Context, module, dir string, names []string, protected ...string) (Stats, error) {
	return r.send(ctx, transfer{module: module, dir: dir, send: true, flags: mirrorFlags}, names, func(s *surveyed) (string, error) {
		return mirrorRules(s, protected)
	})
}

// Add sends those of the files in the local folder dir that the module lacks or that have changed. It deletes nothing.
func (r *Remote) Add(ctx context.Context, module, dir string, names []string) (Stats, error) {
	if len(names) == 0 {
		return Stats{}, nil
	}
	return r.send(ctx, transfer{module: module, dir: dir, send: true, flags: addFlags}, names, func(*surveyed) (string, error) {
		return list(names), nil
	})
}

// send surveys the files, runs t with the input that follows, and compares what rsync found with the survey. They read the folder one
// after the other, and rsync only knows what to leave out: it would ignore that a file has disappeared, and send a new one.
func (r *Remote) send(ctx context.Context, t transfer, names []string, input func(*surveyed) (string, error)) (Stats, error) {
	var c counts
	s, err := survey(ctx, t.dir, names)
	if err == nil {
		t.input, err = input(s)
	}
	if err == nil {
		c, err = r.run(ctx, t)
	}
	if err == nil && c.listed != s.count {
		err = fmt.Errorf("%s changed while it was sent: %d files, and then %d: run it again", t.dir, s.count, c.listed)
	}
	if err != nil {
		return Stats{}, fmt.Errorf("rsync to %s: %w", t.module, err)
	}
	return c.Stats, nil
}

// Fetch copies files, and folders with their contents, from a folder of the module (from, "" for its top) into the local folder
// to, which it makes if necessary. It deletes nothing there. It leaves out symbolic links that lead out of the fetched folder;
// naming one is an error.
//
// Basis, if not "", is a local folder. Fetch copies files that are unchanged in it from there, and gets only the differences of
// changed ones. It does not make hard links, although they would be faster: a write to a fetched file, or a change of its mode,
// must not change the basis, nor the other way round.
func (r *Remote) Fetch(ctx context.Context, module, from string, names []string, to, basis string) (Stats, error) {
	t := transfer{module: module, dir: to, flags: slices.Clone(fetchFlags)}
	if len(names) == 0 {
		return Stats{}, nil
	}
	stats, err := r.fetch(ctx, t, from, names, basis)
	if err != nil {
		return Stats{}, fmt.Errorf("rsync from %s: %w", module, err)
	}
	return stats, nil
}

func (r *Remote) fetch(ctx context.Context, t transfer, from string, names []string, basis string) (Stats, error) {
	var err error
	if t.input, err = listBelow(from, names); err != nil {
		return Stats{}, err
	}
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return Stats{}, err
	}
	if basis != "" {
		path, err := filepath.Abs(basis) // for rsync a relative path is relative to the destination
		if err != nil {
			return Stats{}, err
		}
		t.flags = append(t.flags, "--copy-dest="+path)
	}
	c, err := r.run(ctx, t)
	if err != nil {
		return Stats{}, err
	}
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(t.dir, filepath.FromSlash(name))); err != nil {
			return Stats{}, fmt.Errorf("%s: did not come: a link that leads out of the folder is left behind", name)
		}
	}
	return c.Stats, nil
}

// list returns the input for --files-from. The ./ prevents that #name is a comment.
func list(names []string) string {
	return "./" + strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), "\x00./") + "\x00"
}

// listBelow returns the input for --files-from, with names below a folder that is not part of the destination's paths: a dot in
// the middle of a path says so. (With the folder in the URL, the daemon of rsync 3.5.0 finds the files but cannot open them.)
func listBelow(from string, names []string) (string, error) {
	from = cmp.Or(from, ".")
	if err := checkName(from); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range names {
		if err := checkName(name); err != nil {
			return "", err
		}
		if strings.Contains(name, `\`) && strings.ContainsAny(name, "*?[") {
			return "", fmt.Errorf("%q: rsync takes this for a pattern: fetch the folder that it is in", name)
		}
		b.WriteString("./" + from + "/./" + name + "\x00")
	}
	return b.String(), nil
}
