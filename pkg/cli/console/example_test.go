package console_test

import (
	"context"
	"log"
	"os"
	"strings"

	"slipway.build/pkg/cli/console"
	"slipway.build/pkg/mechanism/action"
)

func Example() {
	view := console.New(console.Options{
		Out:       os.Stdout,
		Err:       os.Stderr,
		Mode:      console.Plain,
		Artifacts: func(path string) bool { return strings.HasPrefix(path, "dist/") },
		Getenv:    os.Getenv,
	})
	defer view.Close() // above all when the run is interrupted

	g := &action.Graph{Root: "/src/tree", State: "state"} // and its actions
	if err := g.Run(context.Background(), action.Options{Events: view.Event}); err != nil {
		log.Print("the view has shown why it failed")
	}
}
