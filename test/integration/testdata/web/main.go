// Web is what the cluster tests run in Pods: a server that says on which host it runs, and a client of it.
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
	if len(os.Args) == 3 && os.Args[1] == "get" {
		client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Get(os.Args[2])
		if err != nil {
			log.Fatal(err)
		}
		defer answer.Body.Close()
		if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
			log.Fatal(err)
		}
		return
	}
	node := os.Getenv("NODE")
	log.Print("serving on ", node)
	log.Fatal(http.ListenAndServe(":8080", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, node)
	})))
}
