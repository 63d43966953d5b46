//go:build testset

// Package cmd keeps modules in go.mod that only the test set needs.
package cmd

import (
	// `go test -c k8s.io/kubernetes/test/e2e` links the sample API server, which only test files
	// import; go mod tidy sees only the test files of direct imports.
	_ "k8s.io/kubernetes/test/e2e/apimachinery"
	_ "k8s.io/kubernetes/test/e2e_node"
)
