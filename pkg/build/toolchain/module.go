package toolchain

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// ModuleDir returns the folder of a module that the one in dir requires. It is fetched if it is not in the module cache.
func (g *Go) ModuleDir(ctx context.Context, dir, path, goflags string) (string, error) {
	for _, fetch := range []bool{false, true} {
		if fetch {
			if _, err := g.output(ctx, dir, goflags, "mod", "download", path); err != nil {
				return "", err
			}
		}
		found, err := g.output(ctx, dir, goflags, "list", "-m", "-f", "{{.Dir}}", path)
		if err != nil {
			return "", err
		}
		if found != "" {
			return found, nil
		}
	}
	return "", fmt.Errorf("module %s: not in the module cache after it was fetched", path)
}

// output runs the go command and returns what it prints.
func (g *Go) output(ctx context.Context, dir, goflags string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	c := g.Command(ctx, dir, "", "", args...)
	c.Env = append(c.Env, "GOFLAGS="+goflags)
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}
