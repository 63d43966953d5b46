package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A document is a file, and where the API server has its content.
type document struct {
	file    string // relative to the folder of all
	path    string // of the URL
	accept  string // media type; empty means JSON
	openAPI bool
}

// documents lists the files for the paths that /openapi/v3 names, such as apis/apps/v1.
func documents(paths []string) []document {
	all := []document{
		{file: "discovery/aggregated_v2.json", path: "apis",
			accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"},
		{file: "openapi-spec/swagger.json", path: "openapi/v2", openAPI: true},
	}
	for _, path := range paths {
		name := strings.ReplaceAll(path, "/", "__")
		all = append(all, document{file: "openapi-spec/v3/" + name + "_openapi.json", path: "openapi/v3/" + path, openAPI: true})
		if strings.HasPrefix(path, "api") {
			all = append(all, document{file: "discovery/" + name + ".json", path: path})
		}
	}
	return all
}

// A client asks an API server.
type client struct {
	http.Client
	url, token string
}

// write writes all documents to a folder.
func (c *client) write(ctx context.Context, to string) error {
	defer c.CloseIdleConnections()
	data, err := c.get(ctx, "openapi/v3", "")
	if err != nil {
		return err
	}
	var index struct{ Paths map[string]any }
	if err := json.Unmarshal(data, &index); err != nil {
		return fmt.Errorf("openapi/v3: %w", err)
	}
	for _, d := range documents(slices.Sorted(maps.Keys(index.Paths))) {
		data, err := c.get(ctx, d.path, d.accept)
		if err != nil {
			return err
		}
		if data, err = format(data, d.openAPI); err != nil {
			return fmt.Errorf("%s: %w", d.path, err)
		}
		file := filepath.Join(to, filepath.FromSlash(d.file))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) get(ctx context.Context, path, accept string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/"+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("get %s: %s", path, resp.Status)
	}
	return data, err
}

// format returns JSON in the form of `jq -S .`. An OpenAPI document gets the version that upstream's files have.
func format(data []byte, openAPI bool) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var document map[string]any
	if err := d.Decode(&document); err != nil {
		return nil, err
	}
	if openAPI {
		info, ok := document["info"].(map[string]any)
		if !ok {
			return nil, errors.New("it has no info")
		}
		info["version"] = "unversioned"
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(document)
	return out.Bytes(), err
}
