// Probe is the program that `slipway cluster verify` runs in Pods: it does what checks need a container to do.
//
//	probe serve [ADDRESS]     answer HTTP at ADDRESS, by default :8080; see serve.go
//	probe fetch URL [N]       get URL N times, over a new connection each time, and print the answers
//	probe resolve NAME        print the addresses of a name
//	probe alias NAME          print the canonical name of a name
//	probe service NAME        print targets and ports of a service's SRV records
//	probe read FILE           print a file, or standard input for -
//	probe write FILE TEXT     write a file
//	probe fill FILE MIB       write a file of that size, and wait
//	probe reserve FILE N      reserve N percent of a file system's space, and wait
//	probe allocate MIB        use that much memory, and wait
//	probe grow MIB            use 4 MiB more of memory every second, up to that much, and wait
//	probe exit CODE           exit with a code
//	probe wait                do nothing until SIGINT or SIGTERM
//
// It ends at once on these signals, and exits with 1 if it fails.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	args := append(os.Args[1:], "", "", "")
	if err := run(args[0], args[1], args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "probe %s: %v\n", strings.Join(os.Args[1:], " "), err)
		os.Exit(1)
	}
}

func run(command, first, second string) error {
	switch command {
	case "serve":
		return serve(first)
	case "fetch":
		return fetch(first, second)
	case "resolve":
		addresses, err := net.LookupHost(first)
		return print(addresses, err)
	case "alias":
		name, err := net.LookupCNAME(first)
		return print([]string{name}, err)
	case "service":
		return service(first)
	case "read":
		return read(first)
	case "write":
		return os.WriteFile(first, []byte(second+"\n"), 0o644)
	case "fill":
		return fill(first, second)
	case "reserve":
		return reserve(first, second)
	case "allocate":
		return allocate(first)
	case "grow":
		return grow(first)
	case "exit":
		code, err := strconv.Atoi(first)
		if err != nil {
			return err
		}
		os.Exit(code)
	case "wait":
		wait()
	default:
		return fmt.Errorf("there is no such command")
	}
	return nil
}

// wait returns on SIGINT or SIGTERM.
func wait() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
}

// print prints lines in order.
func print(lines []string, err error) error {
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Println(line)
	}
	return err
}

func fetch(url, times string) error {
	n := 1
	if times != "" {
		var err error
		if n, err = strconv.Atoi(times); err != nil {
			return err
		}
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for range n {
		answer, err := client.Get(url)
		if err != nil {
			return err
		}
		_, err = io.Copy(os.Stdout, answer.Body)
		answer.Body.Close()
		if err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("answers %s", answer.Status)
		}
	}
	return nil
}

func service(name string) error {
	_, records, err := net.LookupSRV("", "", name)
	var lines []string
	for _, r := range records {
		lines = append(lines, fmt.Sprintf("%s %d", r.Target, r.Port))
	}
	return print(lines, err)
}

func read(name string) error {
	in := os.Stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	_, err := io.Copy(os.Stdout, in)
	return err
}

func fill(name, size string) error {
	n, err := strconv.Atoi(size)
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, make([]byte, n<<20), 0o644); err != nil {
		return err
	}
	wait()
	return nil
}

// reserve reserves a part of the space of a file system, in percent, without writing to it.
func reserve(name, percent string) error {
	n, err := strconv.ParseInt(percent, 10, 64)
	if err != nil {
		return err
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	var fs syscall.Statfs_t
	if err := syscall.Fstatfs(int(file.Fd()), &fs); err != nil {
		return err
	}
	if err := syscall.Fallocate(int(file.Fd()), 0, 0, int64(fs.Blocks)*int64(fs.Bsize)/100*n); err != nil {
		return err
	}
	wait()
	return nil
}

func allocate(size string) error {
	n, err := strconv.Atoi(size)
	if err != nil {
		return err
	}
	memory := touched(n)
	wait()
	fmt.Println(memory[len(memory)-1])
	return nil
}

// touched returns memory that the kernel has given to the process: it allocates a page when that is first written.
func touched(mib int) []byte {
	memory := make([]byte, mib<<20)
	for i := range memory {
		memory[i] = byte(i)
	}
	return memory
}

func grow(size string) error {
	n, err := strconv.Atoi(size)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	var memory [][]byte
	for second := time.Tick(time.Second); ; {
		if len(memory)*4 < n {
			memory = append(memory, touched(4))
		}
		select {
		case <-second:
		case <-stop:
			fmt.Println(len(memory))
			return nil
		}
	}
}
