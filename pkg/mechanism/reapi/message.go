package reapi

import "slipway.build/pkg/mechanism/reapi/internal/wire"

// The numbers of the messages' fields are those of build/bazel/remote/execution/v2/remote_execution.proto,
// google/bytestream/bytestream.proto and google/rpc/status.proto.

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

func (d Digest) marshal() []byte {
	return wire.AppendInt(wire.AppendString(nil, 1, d.SHA256), 2, d.Size)
}

func parseDigest(message []byte) (d Digest, err error) {
	err = wire.Fields(message, func(field wire.Field, value []byte, number uint64) error {
		switch field {
		case 1:
			d.SHA256 = string(value)
		case 2:
			d.Size = int64(number)
		}
		return nil
	})
	if err == nil && !d.Valid() {
		err = wire.ErrMessage
	}
	return d, err
}

func (r *Result) marshal() []byte {
	var b []byte
	for _, f := range r.Files {
		file := wire.AppendString(nil, 1, f.Path)
		file = wire.AppendBytes(file, 2, f.Digest.marshal())
		if f.Executable {
			file = wire.AppendInt(file, 4, 1)
		}
		b = wire.AppendBytes(b, 2, file)
	}
	if len(r.Stdout) > 0 {
		b = wire.AppendBytes(b, 5, r.Stdout)
	}
	return b
}

// parseResult returns a result and, if the server has left out Stdout, which it may, its digest.
func parseResult(message []byte) (r *Result, stdout Digest, err error) {
	r = new(Result)
	err = wire.Fields(message, func(field wire.Field, value []byte, _ uint64) (err error) {
		switch field {
		case 2:
			var file OutputFile
			file, err = parseFile(value)
			r.Files = append(r.Files, file)
		case 5:
			r.Stdout = value
		case 6:
			stdout, err = parseDigest(value)
		}
		return err
	})
	return r, stdout, err
}

func parseFile(message []byte) (f OutputFile, err error) {
	err = wire.Fields(message, func(field wire.Field, value []byte, number uint64) (err error) {
		switch field {
		case 1:
			f.Path = string(value)
		case 2:
			f.Digest, err = parseDigest(value)
		case 4:
			f.Executable = number != 0
		}
		return err
	})
	if err == nil && !f.Digest.Valid() { // there may be none
		err = wire.ErrMessage
	}
	return f, err
}

// parseStatus returns the code and the message of a google.rpc.Status.
func parseStatus(message []byte) (code Code, text string, err error) {
	err = wire.Fields(message, func(field wire.Field, value []byte, number uint64) error {
		switch field {
		case 1:
			code = Code(number)
		case 2:
			text = string(value)
		}
		return nil
	})
	return code, text, err
}

// Action returns the digest of an action that runs a command in an empty folder, and the contents that describe it: a server may want
// them before it keeps a result.
func Action(command ...string) (Digest, [][]byte) {
	var c []byte
	for _, argument := range command {
		c = wire.AppendBytes(c, 1, []byte(argument))
	}
	folder := []byte{} // a message Directory without fields
	a := wire.AppendBytes(nil, 1, DigestOf(c).marshal())
	a = wire.AppendBytes(a, 2, DigestOf(folder).marshal())
	return DigestOf(a), [][]byte{c, folder, a}
}
