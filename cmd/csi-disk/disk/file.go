package disk

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// making begins the names of files that are not whole.
const making = ".making-"

// inPlace makes a file that has its name only when it is whole.
func inPlace(name string, write func(*os.File) error) error {
	temporary := filepath.Join(filepath.Dir(name), making+filepath.Base(name))
	file, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(write(file), file.Close())
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return nil
}

// reserve makes a file as long as a volume, and reserves its space on the disk.
func reserve(file *os.File, size int64) error {
	return os.NewSyscallError("fallocate", unix.Fallocate(int(file.Fd()), 0, 0, size))
}

// copyInto copies a file, with its holes, into an empty one.
func copyInto(to *os.File, name string) error {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if err := to.Truncate(info.Size()); err != nil {
		return err
	}
	for at := int64(0); at < info.Size(); {
		data, err := from.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // only a hole is left
		}
		if err != nil {
			return err
		}
		if at, err = from.Seek(data, unix.SEEK_HOLE); err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(to, data), io.NewSectionReader(from, data, at-data)); err != nil {
			return err
		}
	}
	return nil
}

// failure gives an error a code of gRPC, unless it has one. A full disk has the code with which Kubernetes looks for another node.
func failure(err error) error {
	if _, has := status.FromError(err); has {
		return err // or nil
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EFBIG) {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return status.Error(codes.Internal, err.Error())
}
