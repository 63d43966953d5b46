package badrequest

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

type unknown struct{ error }

func (unknown) BadRequest() {}

func TestBadRequestIsFoundInWrappedErrors(t *testing.T) {
	t.Parallel()
	bad := Mark(fs.ErrNotExist)
	if bad.Error() != fs.ErrNotExist.Error() || !errors.Is(bad, fs.ErrNotExist) {
		t.Errorf("%v is no longer the error that was marked", bad)
	}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{bad, true},
		{fmt.Errorf("open: %w", bad), true},
		{errors.Join(fs.ErrInvalid, unknown{fs.ErrExist}), true},
		{fs.ErrNotExist, false},
		{nil, false},
	} {
		if got := Is(tt.err); got != tt.want {
			t.Errorf("%v: got %v, want %v", tt.err, got, tt.want)
		}
	}
}
