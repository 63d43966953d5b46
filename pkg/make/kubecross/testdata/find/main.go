// Find says which Go package toolchain finds, by a version and a sum.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"slipway.build/pkg/make/toolchain"
)

func main() {
	pin := toolchain.Pin{Version: os.Args[1], Sums: map[string]string{runtime.GOOS + "-" + runtime.GOARCH: os.Args[2]}}
	g, err := toolchain.Find(context.Background(), pin, func(text string) { fmt.Println(text) })
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(g.Root)
}
