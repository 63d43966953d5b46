// Package ctxio has readers and writers that end with a context, for copies of large files.
//
// What must never be in here: what is read or written.
package ctxio

import (
	"context"
	"io"
)

type function func(p []byte) (int, error)

func (f function) Read(p []byte) (int, error)  { return f(p) }
func (f function) Write(p []byte) (int, error) { return f(p) }

// Reader reads from another reader until the context ends. From then on, it returns the context's error.
func Reader(ctx context.Context, r io.Reader) io.Reader { return until(ctx, r.Read) }

// Writer writes to another writer until the context ends. From then on, it returns the context's error.
func Writer(ctx context.Context, w io.Writer) io.Writer { return until(ctx, w.Write) }

func until(ctx context.Context, do function) function {
	return func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return do(p)
	}
}
