// Web is what the cluster tests run in Pods: a server that says on which host it runs, a client of it, and a reader and writer of files.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "get":
		err = get(os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == "read":
		var text []byte
		text, err = os.ReadFile(os.Args[2])
		fmt.Print(string(text))
	case len(os.Args) == 4 && os.Args[1] == "write":
		err = os.WriteFile(os.Args[2], []byte(os.Args[3]), 0o644)
	default:
		err = serve()
	}
	if err != nil {
		log.Fatal(err)
	}
}

func get(url string) error {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}

func serve() error {
	node := os.Getenv("NODE")
	log.Print("serving on ", node)
	return http.ListenAndServe(":8080", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, node)
	}))
}
