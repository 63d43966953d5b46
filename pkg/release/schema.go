package release

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"slipway.build/pkg/mechanism/platform"
)

// SchemaID identifies the JSON schema of release.json.
const SchemaID = "https://slipway.build/schema/release-1.json"

// MarshalSchema returns the JSON schema of release.json, made from the Go types.
func MarshalSchema() ([]byte, error) {
	schema, err := jsonschema.For[Release](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[platform.Platform](): {Type: "string", Pattern: "^[a-z0-9]+/[a-z0-9]+$"},
		reflect.TypeFor[time.Time]():         {Type: "string", Format: "date-time"},
		reflect.TypeFor[Kind](): {Type: "string", Enum: []any{
			Tarball, Inputs, SBOM, Sums, Binary, Archive, Image, Index, Deb, RPM}},
		reflect.TypeFor[InputKind](): {Type: "string", Enum: []any{Source, Module, Toolchain, Debian, Patch, Tool, Repository}},
	}})
	if err != nil {
		return nil, err
	}
	schema.ID, schema.Schema = SchemaID, "https://json-schema.org/draft/2020-12/schema"
	schema.Title = "A release of a Kubernetes cluster, by content"
	data, err := json.MarshalIndent(schema, "", "  ")
	return append(data, '\n'), err
}
