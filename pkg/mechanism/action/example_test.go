package action_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"slipway.build/pkg/mechanism/action"
)

// The second run has nothing to do.
func Example() {
	root, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	g := &action.Graph{Root: root, State: "state", Actions: []*action.Action{{
		ID:      "greet",
		Recipe:  []string{"in English"},
		Outputs: []string{"greeting"},
		Run: func(_ context.Context, t *action.Task) error {
			return os.WriteFile(t.Path("greeting"), []byte("hello\n"), 0o644)
		},
	}}}
	show := func(e action.Event) {
		if e.Kind == action.Started || e.Kind == action.Skipped {
			fmt.Println(e.Action, e.Kind)
		}
	}
	for range 2 {
		o := action.Options{Budget: action.Budget{CPU: 8, Memory: 16 << 30}, Events: show}
		if err := g.Run(context.Background(), o); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// greet started
	// greet skipped
}
