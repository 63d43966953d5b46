package kubecross

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"slipway.build/pkg/mechanism/tail"
)

// A message is one of those by which an engine tells how a build, a pull or an import goes.
type message struct {
	Stream      string `json:"stream"` // of a build: output, in pieces
	Status      string `json:"status"` // of a pull or an import
	Error       string `json:"error"`
	ErrorDetail struct {
		Message string `json:"message"`
	} `json:"errorDetail"`
}

// read hands on an engine's messages until there are no more. An error that they tell of is returned, without the output that
// went before it.
func read(r io.Reader, each func(message)) error {
	d := json.NewDecoder(r)
	for {
		var m message
		err := d.Decode(&m)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the engine's answer: %w", err)
		case m.ErrorDetail.Message != "":
			return errors.New(tail.Redact(m.ErrorDetail.Message))
		case m.Error != "":
			return errors.New(tail.Redact(m.Error))
		}
		each(m)
	}
}
