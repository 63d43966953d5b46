//go:build testset

// Package cmd keeps what the test set alone needs in go.mod.
package cmd

import (
	// `go test -c k8s.io/kubernetes/test/e2e` links the sample API server, which nothing but test files
	// import; go mod tidy sees test files of direct imports only.
	_ "k8s.io/kubernetes/test/e2e/apimachinery"
	_ "k8s.io/kubernetes/test/e2e_node"
)
