package pack_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"slipway.build/pkg/make/pack"
	"slipway.build/pkg/mechanism/action"
)

// This packs a tarball of one binary.
func Example() {
	root, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	if err := os.WriteFile(filepath.Join(root, "kubelet"), []byte("an executable"), 0o755); err != nil {
		log.Fatal(err)
	}

	a := pack.Action(pack.Spec{
		Name:    "kubernetes-node-linux-amd64.tar.gz",
		Top:     "kubernetes",
		Time:    time.Unix(1_700_000_000, 0),
		Members: []pack.Member{{From: "kubelet", To: "node/bin/kubelet"}},
	}, pack.Place{Root: root, Tarballs: "tars", Sums: "sums", Cache: filepath.Join(root, "cache")})
	g := action.Graph{Root: root, State: "state", Actions: []*action.Action{a}}
	if err := g.Run(context.Background(), action.Options{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Outputs)
	// Output: [tars/kubernetes-node-linux-amd64.tar.gz sums/kubernetes-node-linux-amd64.tar.gz]
}
