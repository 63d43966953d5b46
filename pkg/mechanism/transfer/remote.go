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

// User is the name that the daemon is to know us by: `auth users = slipway`.
const User = "slipway"

// A Dial opens a connection to a new process `rsync --server --daemon`. It is to give up when ctx is done, and ctx stays
// alive for as long as the connection is needed. Closing the connection must end a Read and a Write that wait. What the far
// end wrote for people (its stderr) may be the error that Close or Read return. If the connection also has
// CloseWrite() error, that is how the far end learns that nothing more will come.
type Dial func(ctx context.Context) (io.ReadWriteCloser, error)

// A Remote is an rsync daemon at the other end of a stream. Each call makes a connection of its own.
type Remote struct {
	Dial     Dial
	Password string // of User

	// Whole sends changed files whole rather than their differences: less work for both ends, if there is no network
	// between them.
	Whole bool

	// Patience is how long nothing may happen before that is an error. 0 stands for 30 seconds, and 10 for the greeting.
	Patience time.Duration
}

// Stats say what a call has moved.
type Stats struct {
	Files          int   // regular files that traveled, or were copied from a basis
	Deleted        int   // of any kind, folders too; 0 from a daemon older than 3.4.4, which does not tell
	Sent, Received int64 // bytes, as rsync counts them: with its own talk
}

// always are the flags of every call: nothing of them depends on the user.
var always = []string{
	"--links", "--perms", "--times",
	"--modify-window=-1", // compare times to the nanosecond
	"--chmod=Du+rwx",     // see Modes in the package comment
	"--from0",            // names and rules end in a NUL, as newlines may be in them
	"--stats", "--no-human-readable", "--no-motd",
	"--8-bit-output", // names in errors are as they are
	// Errors come to us by the protocol. By default a daemon that does not talk to a socket writes them to its own stderr,
	// and we would take a file that it could not write for written. (An rsync before 3.2.3 does not hand on its own flag.)
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

// Mirror makes the module hold exactly these files of the local folder dir: changed ones travel, and all else is deleted,
// except what is at or below the protected paths. Names are relative to dir and slash-separated, and so are protected.
func (r *Remote) Mirror(ctx context.Context, module, dir string, names []string, protected ...string) (Stats, error) {
	t := transfer{what: "rsync to " + module, module: module, dir: dir, send: true}
	s, err := survey(ctx, dir, names)
	if err != nil {
		return Stats{}, fmt.Errorf("%s: %w", t.what, err)
	}
	if t.input, err = mirrorRules(s, protected); err != nil {
		return Stats{}, fmt.Errorf("%s: %w", t.what, err)
	}
	t.flags = mirrorFlags
	return r.send(ctx, t, s)
}

// Add sends these files of the local folder dir to the module. Those that are there already and unchanged do not travel,
// and none are deleted.
func (r *Remote) Add(ctx context.Context, module, dir string, names []string) (Stats, error) {
	t := transfer{what: "rsync to " + module, module: module, dir: dir, send: true}
	if len(names) == 0 {
		return Stats{}, nil
	}
	s, err := survey(ctx, dir, names)
	if err != nil {
		return Stats{}, fmt.Errorf("%s: %w", t.what, err)
	}
	t.input = list(names)
	t.flags = addFlags
	return r.send(ctx, t, s)
}

// Fetch gets files, and folders with all that is in them, from a folder of the module (from, "" for its top) into the local
// folder to, which is made if need be. Nothing is deleted there. A symbolic link that leads out of the fetched folder is left
// behind: an error if it was asked for by name.
//
// Basis, if not "", is a local folder: a file that is unchanged in it is copied from there, and one that is not serves as
// what the differences are to. Copied and not hard-linked, although that would be faster: whoever opens a fetched file to
// write, or changes its mode, must not reach through it into the basis, nor the other way round.
func (r *Remote) Fetch(ctx context.Context, module, from string, names []string, to, basis string) (Stats, error) {
	t := transfer{what: "rsync from " + module, module: module, dir: to}
	if len(names) == 0 {
		return Stats{}, nil
	}
	stats, err := r.fetch(ctx, t, from, names, basis)
	if err != nil {
		return Stats{}, fmt.Errorf("%s: %w", t.what, err)
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
	t.flags = slices.Clone(fetchFlags)
	if basis != "" {
		path, err := filepath.Abs(basis) // rsync takes a relative one as relative to the destination
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

// send runs t, and compares what rsync found with what s did. They look at the folder one after the other, and rsync is
// told what to leave out: it would not miss a file that has gone since, and take one that has come.
func (r *Remote) send(ctx context.Context, t transfer, s *surveyed) (Stats, error) {
	c, err := r.run(ctx, t)
	if err == nil && c.listed != s.count {
		err = fmt.Errorf("%s changed while it was sent: %d files, and then %d: run it again", t.dir, s.count, c.listed)
	}
	if err != nil {
		return Stats{}, fmt.Errorf("%s: %w", t.what, err)
	}
	return c.Stats, nil
}

// list is the input for --files-from. The ./ keeps rsync from taking #name for a comment.
func list(names []string) string {
	return "./" + strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), "\x00./") + "\x00"
}

// listBelow is the input for --files-from, with names below a folder that is not to be there when they arrive: so says a
// dot in the middle of a path. (With the folder in the URL, a daemon 3.5.0 finds the files and then cannot open them.)
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
