package verify

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// stop stops processes, as if they hung.
func stop(pids []int) error { return signal(pids, syscall.SIGSTOP) }

// resume continues stopped processes.
func resume(pids []int) error { return signal(pids, syscall.SIGCONT) }

func signal(pids []int, sig syscall.Signal) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("%v to process %d: %w", sig, pid, err)
		}
	}
	return nil
}

// processes returns the processes of a program in a node.
func (e *env) processes(node, program string) ([]int, error) {
	for _, n := range e.nodes {
		if n.Name == node {
			pids, err := descendants(n.PID, program)
			if err == nil && len(pids) == 0 {
				err = fmt.Errorf("node %s runs no %s", node, program)
			}
			return pids, err
		}
	}
	return nil, fmt.Errorf("there is no node %s", node)
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
