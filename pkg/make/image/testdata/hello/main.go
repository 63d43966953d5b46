// Hello prints what a container sees of its image.
package main

import (
	"encoding/json"
	"os"
	"os/user"
)

func main() {
	tmp, err := os.Stat("/tmp")
	if err != nil {
		panic(err)
	}
	certs, err := os.Stat("/etc/ssl/certs/ca-certificates.crt")
	if err != nil {
		panic(err)
	}
	u, err := user.Current()
	if err != nil {
		panic(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile("/tmp/written", nil, 0o600); err != nil {
		panic(err)
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"args":  os.Args,
		"dir":   dir,
		"user":  u.Username + ":" + u.Uid + ":" + u.HomeDir,
		"tmp":   tmp.Mode().String(),
		"certs": certs.Size() > 100_000,
		"path":  os.Getenv("PATH"),
	})
}
