package verify

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"slipway.build/pkg/prove/cluster"
)

// fileSystemSize returns the size of the file system at a path, in bytes.
func fileSystemSize(path string) int64 {
	var s syscall.Statfs_t
	noError(os.NewSyscallError("statfs "+path, syscall.Statfs(path, &s)))
	return int64(s.Blocks) * s.Bsize
}

// stop stops processes, as if they hung.
func stop(all []*os.Process) { noError(signal(all, syscall.SIGSTOP)) }

// resume continues stopped processes.
func resume(all []*os.Process) { noError(signal(all, syscall.SIGCONT)) }

func signal(all []*os.Process, sig syscall.Signal) error {
	for _, p := range all {
		if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("%v to process %d: %w", sig, p.Pid, err)
		}
	}
	return nil
}

// processes returns the processes of a program in a node. They are handles: a later process that gets the PID of one is not meant.
func (e *env) processes(node, program string) []*os.Process {
	i := slices.IndexFunc(e.nodes, func(n cluster.Process) bool { return n.Name == node })
	if i < 0 {
		fail("there is no node %s", node)
	}
	found := must(handles(func() ([]int, error) { return descendants(e.nodes[i].PID, program) }, os.FindProcess))
	if len(found) == 0 {
		fail("node %s runs no %s", node, program)
	}
	return found
}

// handles returns handles of the processes that list returns. Find is [os.FindProcess]. The list is read again once there are handles,
// since some of the processes may have ended before, and other processes may have their PIDs.
func handles(list func() ([]int, error), find func(pid int) (*os.Process, error)) ([]*os.Process, error) {
	pids, err := list()
	if err != nil {
		return nil, err
	}
	var found []*os.Process
	for _, pid := range pids {
		p, err := find(pid)
		if err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	now, err := list()
	return slices.DeleteFunc(found, func(p *os.Process) bool { return !slices.Contains(now, p.Pid) }), err
}

// descendants returns the processes below one that run a program.
func descendants(root int, program string) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// proc(5): pid (comm) state ppid …, and comm may hold anything.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	var found []int
	for queue := children[root]; len(queue) > 0; queue = queue[1:] {
		queue = append(queue, children[queue[0]]...)
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(queue[0]), "cmdline"))
		if first, _, _ := strings.Cut(string(line), "\x00"); err == nil && filepath.Base(first) == program {
			found = append(found, queue[0])
		}
	}
	return found, nil
}
