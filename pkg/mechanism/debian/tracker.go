package debian

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"slipway.build/pkg/mechanism/atomicfile"
)

const (
	maxTracker      = 1 << 30          // bytes; Debian's file has about 70 MB
	trackerPatience = 10 * time.Minute // how long it may take to fetch it
)

// IsTrackerAddress reports whether a name is the address of a security tracker's file, not the file.
func IsTrackerAddress(name string) bool {
	return strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")
}

// FetchTracker fetches the file of a security tracker into a folder, unless the one that is there is the same by what the server says of
// it (its ETag). It returns its name. What the server does not confirm is not used: an old file knows nothing of new vulnerabilities.
func FetchTracker(ctx context.Context, address, cache string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, trackerPatience)
	defer cancel()
	file := filepath.Join(cache, fmt.Sprintf("tracker-%x.json", sha256.Sum256([]byte(address))))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("User-Agent", "slipway")
	known, err := trackerTag(file)
	if err != nil {
		return "", err
	}
	if known != "" {
		request.Header.Set("If-None-Match", known)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusNotModified && known != "":
		return file, nil
	case answer.StatusCode != http.StatusOK:
		return "", fmt.Errorf("%s: %s", address, answer.Status)
	}
	if err := os.MkdirAll(cache, 0o777); err != nil {
		return "", err
	}
	if err := os.Remove(file + tagSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	err = atomicfile.Write(file, 0o644, func(w io.Writer) error {
		n, err := io.Copy(w, io.LimitReader(answer.Body, maxTracker+1))
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", address, err)
		case n > maxTracker:
			return fmt.Errorf("%s: it has more than %d bytes", address, maxTracker)
		case answer.ContentLength >= 0 && n != answer.ContentLength:
			return fmt.Errorf("%s: it has %d bytes, and %d came", address, answer.ContentLength, n)
		}
		return nil
	})
	if tag := answer.Header.Get("ETag"); err == nil && tag != "" {
		err = atomicfile.WriteFile(file+tagSuffix, []byte(tag), 0o644)
	}
	return file, err
}

// tagSuffix is that of the file with the tag of a tracker's file. It is removed before that changes.
const tagSuffix = ".etag"

// trackerTag returns the tag of a file that is there, or "".
func trackerTag(file string) (string, error) {
	if _, err := os.Stat(file); err != nil {
		return "", nil // nothing is known
	}
	tag, err := os.ReadFile(file + tagSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(tag), err
}
