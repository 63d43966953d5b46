package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"slipway.build/pkg/make/project"
	"slipway.build/pkg/make/relink"
)

func main() {
	relink.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	names := flags.String("rows", "", "which rows, separated by commas (default all but cache-platforms and those of -peers)")
	peers := flags.Bool("peers", false, "only compare with other tools, which are compiled first")
	n := flags.Int("n", 5, "repetitions of all but cold")
	asJSON := flags.Bool("json", false, "print JSON")
	keep := flags.Bool("keep", false, "keep the temporary folder")
	tree := flags.String("tree", ".", "the tree to measure, or a folder in it")
	_ = flags.Parse(args) // it exits
	if *n < 1 {
		return fmt.Errorf("-n: %d is less than 1", *n)
	}
	all := rows()
	switch {
	case *peers:
		all = peerRows()
	case *names != "":
		all = slices.Concat(all, peerRows(), longRows())
	}
	picked, err := pick(all, *names)
	if err != nil {
		return err
	}
	root, err := project.FindRoot(*tree)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return err
	}
	if *keep {
		fmt.Fprintln(progress, "working in", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	b := &bench{root: root, dir: dir, n: *n, progress: progress}
	defer func() {
		if b.away != nil {
			b.away.leave(&err)
		}
		if b.bazel != nil {
			b.bazel.leave(&err)
		}
		if b.cache != nil {
			b.cache.server.Stop()
		}
	}()
	report := Report{Machine: machine()}
	for _, row := range picked {
		b.say("%s: %s", row.Name, row.What)
		err := row.measure(ctx, b, row)
		if lacks := (*missing)(nil); errors.As(err, &lacks) {
			b.say("  NOT MEASURED: %v", lacks.err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", row.Name, err)
		}
		report.Rows = append(report.Rows, row)
	}
	if *asJSON {
		return report.JSON(out)
	}
	return report.Table(out)
}
