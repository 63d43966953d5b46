package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/pkg/stdcopy"
)

// A Spec describes a container.
type Spec struct {
	Role    string // for its label and its name
	Image   string
	Command []string // replaces the image's own
	Env     []string // NAME=value; nothing secret, as everybody with access to the engine can read it
	Dir     string
	Volumes []Volume
	Scratch map[string]int64 // folders in memory, with their largest size in bytes

	AutoRemove bool // the engine removes the container when it ends
}

// A Volume is a folder that outlives containers.
type Volume struct {
	Name     string // see Owner.Name
	Path     string // in containers
	ReadOnly bool
	Filled   bool // with a copy of the image's files at Path, see Data
}

// Streams are the input and output of a container. Any of them may be nil.
type Streams struct {
	In       io.Reader // ends with the container, at the latest
	Out, Err io.Writer
}

// A Container runs or has run. It has no network and no capabilities, cannot become root, and can write only to its volumes and
// scratch folders.
type Container struct {
	ID, Name string

	engine *Engine
	stream types.HijackedResponse
	copied chan error // the error of copying its output
	ended  <-chan container.WaitResponse
	failed <-chan error
}

// An Exit reports how a container ended, other than with success.
type Exit struct {
	Code   int            // as a shell has it: 128 plus the signal's number for a killed one
	Signal syscall.Signal // 0 if none
	Memory bool           // killed because memory ran out
}

func (e Exit) Error() string {
	switch {
	case e.Memory:
		return "killed: the engine's machine is out of memory"
	case e.Signal == syscall.SIGKILL:
		return "killed by signal 9: it was stopped, or memory ran out"
	case e.Signal != 0:
		return fmt.Sprintf("ended by signal %d (%v)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

func exitOf(code int64) Exit {
	exit := Exit{Code: int(code)}
	if code > 128 && code <= 128+64 {
		exit.Signal = syscall.Signal(code - 128)
	}
	return exit
}

// Start runs a container. Its input stays open until streams.In or this process ends; what runs in the container should end
// then, too.
func (e *Engine) Start(ctx context.Context, owner Owner, spec Spec, streams Streams) (*Container, error) {
	name := owner.Name(spec.Role + "-" + strings.ToLower(rand.Text()[:6]))
	created, err := e.Client.ContainerCreate(ctx, e.config(owner, spec), hostConfig(owner, spec), nil, nil, name)
	if err != nil {
		// If ctx ended first, the engine may have made it.
		return nil, errors.Join(fmt.Errorf("create container %s: %w", name, err), e.remove(name))
	}
	c := &Container{ID: created.ID, Name: name, engine: e, copied: make(chan error, 1)}
	if err := c.start(ctx, streams); err != nil {
		return nil, errors.Join(fmt.Errorf("start container %s: %w", name, err), c.Remove())
	}
	return c, nil
}

func (e *Engine) config(owner Owner, spec Spec) *container.Config {
	return &container.Config{
		Image:        spec.Image,
		Entrypoint:   spec.Command[:1],
		Cmd:          spec.Command[1:],
		Env:          withoutRepeats(spec.Env),
		WorkingDir:   spec.Dir,
		User:         user,
		Labels:       owner.Labels(spec.Role),
		OpenStdin:    true,
		StdinOnce:    true,
		AttachStdin:  true,
		AttachStdout: true,
		AttachStderr: true,
	}
}

// user is the name of the unprivileged user in images.
const user = "build"

// withoutRepeats keeps the last value of each variable, since programs would see the first.
func withoutRepeats(env []string) []string {
	seen := map[string]bool{}
	var kept []string
	for _, kv := range slices.Backward(env) {
		if name, _, _ := strings.Cut(kv, "="); !seen[name] {
			seen[name] = true
			kept = append(kept, kv)
		}
	}
	slices.Reverse(kept)
	return kept
}

func hostConfig(owner Owner, spec Spec) *container.HostConfig {
	h := &container.HostConfig{
		NetworkMode:    "none",
		ReadonlyRootfs: true,
		CapDrop:        []string{"ALL"},
		SecurityOpt:    []string{"no-new-privileges"},
		Tmpfs:          map[string]string{},
		AutoRemove:     spec.AutoRemove,
		LogConfig:      container.LogConfig{Type: "none"}, // its output is read as it comes
	}
	for _, v := range spec.Volumes {
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeVolume, Source: owner.Name(v.Name), Target: v.Path, ReadOnly: v.ReadOnly})
	}
	for folder, size := range spec.Scratch {
		h.Tmpfs[folder] = fmt.Sprintf("rw,exec,nosuid,nodev,mode=1777,size=%d", size)
	}
	return h
}

// DockerRun returns the docker command line that runs such a container.
func (s Spec) DockerRun(owner Owner) []string {
	h := hostConfig(owner, s)
	args := []string{"docker", "run", "--rm", "--interactive", "--network=" + string(h.NetworkMode), "--read-only", "--user=" + user}
	for _, capability := range h.CapDrop {
		args = append(args, "--cap-drop="+capability)
	}
	for _, option := range h.SecurityOpt {
		args = append(args, "--security-opt="+option)
	}
	for _, m := range h.Mounts {
		volume := fmt.Sprintf("--mount=type=volume,source=%s,target=%s", m.Source, m.Target)
		if m.ReadOnly {
			volume += ",readonly"
		}
		args = append(args, volume)
	}
	for _, folder := range slices.Sorted(maps.Keys(h.Tmpfs)) {
		args = append(args, "--tmpfs="+folder+":"+h.Tmpfs[folder])
	}
	for _, kv := range withoutRepeats(s.Env) {
		args = append(args, "--env="+kv)
	}
	args = append(args, "--workdir="+s.Dir, "--entrypoint="+s.Command[0], s.Image)
	return append(args, s.Command[1:]...)
}

func (c *Container) start(ctx context.Context, streams Streams) error {
	var err error
	c.stream, err = await(ctx, func() (types.HijackedResponse, error) {
		return c.engine.Client.ContainerAttach(ctx, c.ID, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	}, func(late types.HijackedResponse) { late.Close() })
	if err != nil {
		return err
	}
	// It waits for longer than the start may take. Wait has a context of its own.
	c.ended, c.failed = c.engine.Client.ContainerWait(context.WithoutCancel(ctx), c.ID, container.WaitConditionNextExit)
	if err := c.engine.Client.ContainerStart(ctx, c.ID, container.StartOptions{}); err != nil {
		return err
	}
	if streams.In != nil {
		go func() {
			_, _ = io.Copy(c.stream.Conn, streams.In) // it fails when the container has ended
			_ = c.stream.CloseWrite()
		}()
	}
	out, errs := orDiscard(streams.Out), orDiscard(streams.Err)
	go func() {
		_, err := stdcopy.StdCopy(out, errs, c.stream.Reader)
		c.copied <- err
	}()
	return nil
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// Wait waits until the container has ended and all of its output is copied. The error is an Exit unless it succeeded. When ctx
// ends first, Wait returns; the caller removes the container.
func (c *Container) Wait(ctx context.Context) error {
	var status int64
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-c.failed:
		return c.engine.Lost(err)
	case end := <-c.ended:
		if end.Error != nil {
			return fmt.Errorf("container %s: %s", c.Name, end.Error.Message)
		}
		status = end.StatusCode
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-c.copied:
		if status != 0 {
			return c.exit(ctx, status)
		}
		return err
	}
}

func (c *Container) exit(ctx context.Context, status int64) error {
	exit := exitOf(status)
	info, err := c.engine.Client.ContainerInspect(ctx, c.ID)
	exit.Memory = err == nil && info.State != nil && info.State.OOMKilled
	return exit
}

// Remove removes the container, running or not. It takes no context, because it must happen after a cancellation, too.
func (c *Container) Remove() error {
	if c.stream.Conn != nil {
		c.stream.Close()
	}
	return c.engine.remove(c.ID)
}

func (e *Engine) remove(id string) error {
	gone, timeout := e.gone.Load(), 3*patience
	if gone {
		timeout = time.Second // it may be back
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := e.Client.ContainerRemove(ctx, id, container.RemoveOptions{Force: true})
	for err != nil && errdefs.IsConflict(err) && ctx.Err() == nil { // it is being removed already
		time.Sleep(50 * time.Millisecond)
		err = e.Client.ContainerRemove(ctx, id, container.RemoveOptions{Force: true})
	}
	if err != nil && !errdefs.IsNotFound(err) && !gone { // the next run finds it
		return fmt.Errorf("remove container %.12s: %w", id, err)
	}
	return nil
}

// WatchMemory samples the resident memory of a container's processes about every second. The function that it returns stops
// this and returns the peak in bytes, or 0 if the engine has no such figures.
func (c *Container) WatchMemory() (peak func() int64) {
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan int64, 1)
	go func() {
		var most int64
		defer func() { result <- most }()
		stats, err := c.engine.Client.ContainerStats(ctx, c.ID, true)
		if err != nil {
			return
		}
		defer stats.Body.Close()
		for lines := json.NewDecoder(stats.Body); ; {
			var now container.StatsResponse
			if lines.Decode(&now) != nil {
				return
			}
			// Control groups call it rss in version 1 and anon in version 2. Their usage would count the file cache, too.
			most = max(most, int64(now.MemoryStats.Stats["rss"]), int64(now.MemoryStats.Stats["anon"]))
		}
	}()
	return func() int64 { cancel(); return <-result }
}
