package standin

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/reapi"
	"slipway.build/pkg/mechanism/reapi/internal/wire"
)

// ServeHTTP answers a request as gRPC does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := path.Base(r.URL.Path)
	kind, denied := s.begin(method, r.Header)
	switch kind {
	case Slow:
		time.Sleep(20 * time.Millisecond)
	case Stall:
		select {
		case <-r.Context().Done():
		case <-s.done:
		}
		return
	case Hang:
		panic(http.ErrAbortHandler)
	}
	out := &answer{w: w, kind: kind, damage: s.damaged()}
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
	var err error
	switch handle := methods[method]; {
	case denied || kind == Deny:
		err = &reapi.StatusError{Code: reapi.PermissionDenied, Message: "not%20you"}
	case kind == Ask:
		err = &reapi.StatusError{Code: reapi.Unauthenticated}
	case kind == Refuse:
		err = &reapi.StatusError{Code: reapi.Unavailable}
	case handle == nil:
		err = &reapi.StatusError{Code: reapi.Unimplemented}
	default:
		err = handle(s, r.Body, out)
	}
	status := &reapi.StatusError{}
	if err != nil && !errors.As(err, &status) {
		status = &reapi.StatusError{Code: reapi.InvalidArgument, Message: err.Error()}
	}
	w.Header().Set("Grpc-Status", strconv.Itoa(int(status.Code)))
	w.Header().Set("Grpc-Message", status.Message)
}

// An answer sends messages, whole or not.
type answer struct {
	w      http.ResponseWriter
	kind   Fault
	damage func([]byte) []byte // may be nil
}

func (a *answer) send(message []byte) error {
	frame := wire.Frame(message)
	if a.damage != nil {
		frame = a.damage(frame)
	}
	switch a.kind {
	case Garbage:
		frame = bytes.Repeat([]byte{0xff}, 64)
	case Truncate:
		if _, err := a.w.Write(frame[:len(frame)-1]); err != nil {
			return err
		}
		panic(http.ErrAbortHandler)
	case Trickle:
		return a.pace(frame, 1, 20*time.Millisecond)
	case Pace:
		return a.pace(frame, 64<<10, 100*time.Millisecond)
	}
	_, err := a.w.Write(frame)
	return err
}

// pace sends a frame in pieces.
func (a *answer) pace(frame []byte, size int, pause time.Duration) error {
	for piece := range slices.Chunk(frame, size) {
		if _, err := a.w.Write(piece); err != nil {
			return err
		}
		if err := http.NewResponseController(a.w).Flush(); err != nil {
			return err
		}
		time.Sleep(pause)
	}
	return nil
}

// altered returns a content as it is sent.
func (a *answer) altered(data []byte) []byte {
	if a.kind == Corrupt && len(data) > 0 {
		data = bytes.Clone(data)
		data[len(data)/2]++
	}
	return data
}

var methods = map[string]func(*Server, io.Reader, *answer) error{
	"GetCapabilities":    (*Server).capabilities,
	"GetActionResult":    (*Server).result,
	"UpdateActionResult": (*Server).storeResult,
	"FindMissingBlobs":   (*Server).missing,
	"BatchReadBlobs":     (*Server).readBatch,
	"BatchUpdateBlobs":   (*Server).writeBatch,
	"Read":               (*Server).read,
	"Write":              (*Server).write,
}

func (s *Server) capabilities(_ io.Reader, a *answer) error {
	s.mu.Lock()
	update := int64(1)
	if s.readOnly {
		update = 0
	}
	s.mu.Unlock()
	cache := wire.AppendInt(nil, 1, 1) // SHA256
	cache = wire.AppendBytes(cache, 2, wire.AppendInt(nil, 1, update))
	return a.send(wire.AppendBytes(nil, 1, cache))
}

// fieldsOf reads a request of one message.
func fieldsOf(body io.Reader, f func(field wire.Field, value []byte, number uint64) error) error {
	message, err := wire.ReadFrame(body)
	if err != nil {
		return err
	}
	return wire.Fields(message, f)
}

// digestOf reads a message Digest.
func digestOf(message []byte) (d reapi.Digest, err error) {
	err = wire.Fields(message, func(field wire.Field, value []byte, number uint64) error {
		switch field {
		case 1:
			d.SHA256 = string(value)
		case 2:
			d.Size = int64(number)
		}
		return nil
	})
	return d, err
}

// message returns a Digest as a message.
func message(d reapi.Digest) []byte {
	return wire.AppendInt(wire.AppendString(nil, 1, d.SHA256), 2, d.Size)
}

func (s *Server) content(d reapi.Digest) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.contents[d]
	return data, ok
}

// keep stores a content under its digest, which must be that of the bytes.
func (s *Server) keep(d reapi.Digest, data []byte) error {
	if reapi.DigestOf(data) != d {
		return errors.New("the bytes have another digest")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contents[d] = data
	return nil
}

func (s *Server) result(body io.Reader, a *answer) error {
	var action reapi.Digest
	inline := false
	err := fieldsOf(body, func(field wire.Field, value []byte, number uint64) (err error) {
		switch field {
		case 2:
			action, err = digestOf(value)
		case 3:
			inline = number != 0
		}
		return err
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	result, ok := s.results[action]
	inline = inline && !s.apart
	s.mu.Unlock()
	if !ok {
		return &reapi.StatusError{Code: reapi.NotFound}
	}
	err = wire.Fields(result, func(field wire.Field, value []byte, _ uint64) error {
		if field != 2 {
			return nil
		}
		return wire.Fields(value, func(field wire.Field, value []byte, _ uint64) error {
			if field != 2 {
				return nil
			}
			d, err := digestOf(value)
			if _, ok := s.content(d); err == nil && !ok {
				err = &reapi.StatusError{Code: reapi.NotFound, Message: "a file is gone"}
			}
			return err
		})
	})
	if err == nil && !inline {
		result, err = s.withoutStdout(result)
	}
	if err != nil {
		return err
	}
	return a.send(a.altered(result))
}

// withoutStdout returns a result that has the digest of stdout instead of its bytes, which become a content.
func (s *Server) withoutStdout(result []byte) (short []byte, err error) {
	err = wire.Fields(result, func(field wire.Field, value []byte, _ uint64) error {
		if field != 5 {
			short = wire.AppendBytes(short, field, value)
			return nil
		}
		d := reapi.DigestOf(value)
		short = wire.AppendBytes(short, 6, message(d))
		return s.keep(d, value)
	})
	return short, err
}

func (s *Server) storeResult(body io.Reader, a *answer) error {
	var action reapi.Digest
	var result []byte
	err := fieldsOf(body, func(field wire.Field, value []byte, _ uint64) (err error) {
		switch field {
		case 2:
			action, err = digestOf(value)
		case 3:
			result = value
		}
		return err
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.results[action] = result
	s.mu.Unlock()
	return a.send(result)
}

func (s *Server) missing(body io.Reader, a *answer) error {
	var missing []byte
	err := fieldsOf(body, func(field wire.Field, value []byte, _ uint64) error {
		if field != 2 {
			return nil
		}
		d, err := digestOf(value)
		if _, ok := s.content(d); err == nil && !ok {
			missing = wire.AppendBytes(missing, 2, value)
		}
		return err
	})
	if err != nil {
		return err
	}
	return a.send(missing)
}

func (s *Server) readBatch(body io.Reader, a *answer) error {
	var contents []byte
	err := fieldsOf(body, func(field wire.Field, value []byte, _ uint64) error {
		if field != 2 {
			return nil
		}
		d, err := digestOf(value)
		one := wire.AppendBytes(nil, 1, value)
		if data, ok := s.content(d); ok {
			one = wire.AppendBytes(one, 2, a.altered(data))
		} else {
			one = wire.AppendBytes(one, 3, wire.AppendInt(nil, 1, int64(reapi.NotFound)))
		}
		contents = wire.AppendBytes(contents, 1, one)
		return err
	})
	if err != nil {
		return err
	}
	return a.send(contents)
}

func (s *Server) writeBatch(body io.Reader, a *answer) error {
	var stored []byte
	err := fieldsOf(body, func(field wire.Field, value []byte, _ uint64) error {
		if field != 2 {
			return nil
		}
		var d reapi.Digest
		var data []byte
		err := wire.Fields(value, func(field wire.Field, value []byte, _ uint64) (err error) {
			switch field {
			case 1:
				d, err = digestOf(value)
			case 2:
				data = value
			}
			return err
		})
		if err != nil {
			return err
		}
		one := wire.AppendBytes(nil, 1, message(d))
		if err := s.keep(d, data); err != nil {
			one = wire.AppendBytes(one, 2, wire.AppendString(wire.AppendInt(nil, 1, int64(reapi.InvalidArgument)), 2, err.Error()))
		}
		stored = wire.AppendBytes(stored, 1, one)
		return nil
	})
	if err != nil {
		return err
	}
	return a.send(stored)
}

// named returns the digest at the end of a resource's name: …/SHA256/SIZE.
func named(resource string) (reapi.Digest, error) {
	folder, last := path.Split(resource)
	size, err := strconv.ParseInt(last, 10, 64)
	return reapi.Digest{SHA256: path.Base(folder), Size: size}, err
}

// piece is how many bytes a message of a content that is read has.
const piece = 1 << 20

func (s *Server) read(body io.Reader, a *answer) error {
	var d reapi.Digest
	err := fieldsOf(body, func(field wire.Field, value []byte, _ uint64) (err error) {
		if field == 1 {
			d, err = named(string(value))
		}
		return err
	})
	if err != nil {
		return err
	}
	data, ok := s.content(d)
	if !ok {
		return &reapi.StatusError{Code: reapi.NotFound}
	}
	data = a.altered(data)
	for len(data) > 0 {
		n := min(len(data), piece)
		if err := a.send(wire.AppendBytes(nil, 10, data[:n])); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func (s *Server) write(body io.Reader, a *answer) error {
	var name string
	var data []byte
	for finished := false; !finished; {
		err := fieldsOf(body, func(field wire.Field, value []byte, number uint64) error {
			switch field {
			case 1:
				name = string(value)
			case 2:
				if int(number) != len(data) {
					return errors.New("an offset is wrong")
				}
			case 3:
				finished = true
			case 10:
				data = append(data, value...)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	d, err := named(name)
	if err != nil || !strings.Contains(name, "uploads/") {
		return errors.New("the resource has a wrong name")
	}
	if err := s.keep(d, data); err != nil {
		return err
	}
	return a.send(wire.AppendInt(nil, 1, d.Size))
}
