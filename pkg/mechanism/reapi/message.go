package reapi

import (
	remote "github.com/bazelbuild/remote-apis/build/bazel/remote/execution/v2"
	"google.golang.org/protobuf/proto"
)

// A Result is a message ActionResult: what the server keeps for an action. The server drops a result whose files it no longer has.
type Result struct {
	Files  []OutputFile
	Stdout []byte // kept with the result, whatever it is
}

// An OutputFile is a file of a Result.
type OutputFile struct {
	Path       string // relative, with slashes
	Digest     Digest
	Executable bool
}

func (d Digest) message() *remote.Digest { return &remote.Digest{Hash: d.SHA256, SizeBytes: d.Size} }

func messages(digests []Digest) []*remote.Digest {
	all := make([]*remote.Digest, len(digests))
	for i, d := range digests {
		all[i] = d.message()
	}
	return all
}

func parseDigest(m *remote.Digest) (Digest, error) {
	d := Digest{m.GetHash(), m.GetSizeBytes()}
	if !d.Valid() {
		return Digest{}, errMessage
	}
	return d, nil
}

func (r *Result) message() *remote.ActionResult {
	m := &remote.ActionResult{StdoutRaw: r.Stdout}
	for _, f := range r.Files {
		m.OutputFiles = append(m.OutputFiles, &remote.OutputFile{Path: f.Path, Digest: f.Digest.message(), IsExecutable: f.Executable})
	}
	return m
}

func parseResult(m *remote.ActionResult) (*Result, error) {
	r := &Result{Stdout: m.StdoutRaw}
	for _, f := range m.OutputFiles {
		d, err := parseDigest(f.Digest)
		if err != nil {
			return nil, err
		}
		r.Files = append(r.Files, OutputFile{f.Path, d, f.IsExecutable})
	}
	return r, nil
}

// Action returns the digest of an action that runs a command in an empty folder, and the contents that describe it: a server may want
// them before it keeps a result. Arguments are UTF-8.
func Action(command ...string) (Digest, [][]byte) {
	described := encode(&remote.Command{Arguments: command})
	folder := encode(&remote.Directory{})
	action := encode(&remote.Action{CommandDigest: DigestOf(described).message(), InputRootDigest: DigestOf(folder).message()})
	return DigestOf(action), [][]byte{described, folder, action}
}

// encode returns the bytes of a message, which are the same each time.
func encode(m proto.Message) []byte {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err) // a text is not UTF-8
	}
	return data
}
