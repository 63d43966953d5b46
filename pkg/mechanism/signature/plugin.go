package signature

import (
	"bytes"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"slipway.build/pkg/mechanism/child"
)

// pluginPrefix begins the names of programs that have keys.
const pluginPrefix = "sigstore-kms-"

// protocol is the version of the protocol of plugins that this package speaks.
const protocol = "v1"

// A plugin is a private key that a program has, perhaps of a key management service or a hardware module: sigstore-kms-NAME for keys that
// are named NAME://ID. Sigstore's package signature/kms/cliplugin describes the protocol.
type plugin struct {
	program, id string
}

// asPlugin returns the plugin that has the key of a name.
func asPlugin(name string) (plugin, bool) {
	scheme, id, ok := strings.Cut(name, "://")
	return plugin{pluginPrefix + scheme, id}, ok && scheme != "" && !strings.HasPrefix(name, fromVariable)
}

// An answer is what a plugin prints.
type answer struct {
	Error     string `json:"errorMessage"`
	PublicKey *struct {
		PEM []byte `json:"publicKeyPEM"`
	} `json:"publicKey"`
	SignMessage *struct {
		Signature []byte `json:"signature"`
	} `json:"signMessage"`
}

// call calls a method of the plugin.
func (p plugin) call(ctx context.Context, method string, options map[string]any, input []byte) (*answer, error) {
	request, err := json.Marshal(map[string]any{
		"initOptions": map[string]any{
			"protocolVersion": protocol, "keyResourceID": p.id, "hashFunc": crypto.SHA256, "rpcOptions": map[string]any{},
		},
		"methodName": method,
		method:       options,
	})
	if err != nil {
		return nil, err
	}
	var out limited
	cmd := exec.CommandContext(ctx, p.program, protocol, string(request))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, os.Stderr
	err = child.Run(cmd, syscall.SIGTERM, nil)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("no program %s is in PATH, which would have the key", p.program)
	case err != nil && !errors.As(err, &exit): // the status says nothing, by the protocol
		return nil, fmt.Errorf("%s: %w", p.program, err)
	}
	var a answer
	if failed := json.Unmarshal(out.Bytes(), &a); failed != nil {
		return nil, errors.Join(fmt.Errorf("%s: its answer to %s is not that of a plugin: %w", p.program, method, failed), err)
	}
	if a.Error != "" {
		return nil, fmt.Errorf("%s: %s", p.program, a.Error)
	}
	return &a, nil
}

// public asks for the public key.
func (p plugin) public(ctx context.Context) (PublicKey, error) {
	a, err := p.call(ctx, "publicKey", map[string]any{"publicKeyOptions": map[string]any{}}, nil)
	if err != nil {
		return PublicKey{}, err
	}
	if a.PublicKey == nil {
		return PublicKey{}, fmt.Errorf("%s: its answer has no public key", p.program)
	}
	key, err := ParsePublic(a.PublicKey.PEM)
	if err != nil {
		return PublicKey{}, fmt.Errorf("%s: %w", p.program, err)
	}
	return key, nil
}

// sign has the plugin sign a message, which it hashes itself.
func (p plugin) sign(ctx context.Context, data []byte) ([]byte, error) {
	a, err := p.call(ctx, "signMessage", map[string]any{"signOptions": map[string]any{}}, data)
	if err != nil {
		return nil, err
	}
	if a.SignMessage == nil {
		return nil, fmt.Errorf("%s: its answer has no signature", p.program)
	}
	return a.SignMessage.Signature, nil
}

// limited keeps what a plugin prints, up to the size of the largest bundle.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > MaxBundle {
		return 0, errors.New("it prints too much")
	}
	return l.Buffer.Write(p)
}
