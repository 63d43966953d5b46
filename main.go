// Command slipway builds a complete Kubernetes cluster from source and packs it into release tarballs.
// See package slipway.build/pkg/cli, or run it with --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"slipway.build/pkg/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cli.Run(ctx, cli.Std(), os.Args[1:]...)
	stop()
	if err == nil {
		return
	}
	var exit *cli.ExitError
	if !errors.As(err, &exit) {
		exit = &cli.ExitError{Err: err, Code: 1}
	}
	if !exit.Shown {
		fmt.Fprintln(os.Stderr, "slipway:", exit)
	}
	os.Exit(exit.Code)
}
