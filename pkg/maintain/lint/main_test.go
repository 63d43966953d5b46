package lint_test

import (
	"os"
	"testing"

	"slipway.build/pkg/maintain/lint/vettool"
)

func TestMain(m *testing.M) {
	vettool.Main() // the test's program is a tool of go vet, too
	os.Exit(m.Run())
}
