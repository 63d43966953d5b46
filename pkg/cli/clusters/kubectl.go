package clusters

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"slipway.build/pkg/cli/session"
	"slipway.build/pkg/mechanism/badrequest"
	"slipway.build/pkg/mechanism/child"
	"slipway.build/pkg/prove/cluster"
)

func newClusterKubectl(o commands) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "kubectl [flags] [--] argument...",
		Short: "Run the release's kubectl for a cluster",
		Long: `kubectl runs the kubectl of the cluster's release, as the cluster's administrator. The arguments are kubectl's: what comes
before the first of them that is no flag, or before --, is slipway's. The exit code is kubectl's, too.`,
		Example: "  sudo slipway cluster kubectl get pods --all-namespaces\n" +
			"  sudo slipway cluster kubectl --name other -- --namespace kube-system get pods",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := o.ownCluster(name)
			if err != nil {
				return err
			}
			kubectl, err := s.Kubectl()
			if err != nil {
				return clusterError(err)
			}
			return o.interactive(s.KubectlEnvironment(os.Environ()), append([]string{kubectl}, args...)...)
		},
	}
	c.Flags().SetInterspersed(false) // flags after the command are kubectl's
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return badrequest.Mark(fmt.Errorf("%w of slipway cluster kubectl: flags of kubectl come after its command, or after --", err))
	})
	return nameFlag(c, &name)
}

func newClusterShell(o commands) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "shell [flags] NODE [--] [command [argument...]]",
		Short: "Open a shell, or run a command, in a node",
		Long: `shell opens bash in a node, or runs a command there: in the node's namespaces, with its files and programs, among them
crictl and ctr. The exit code is the command's. It needs root.

In a node, /run/slipway/release has the release, and /run/slipway/node the node's own files and logs.`,
		Example: "  sudo slipway cluster shell slipway-1\n  sudo slipway cluster shell slipway-2 -- crictl ps",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := o.ownCluster(name)
			if err != nil {
				return err
			}
			command := args[1:]
			if len(command) > 0 && command[0] == "--" {
				command = command[1:]
			}
			if len(command) == 0 {
				command = []string{"bash"}
			} else if strings.HasPrefix(command[0], "-") {
				return badrequest.Mark(fmt.Errorf("%s is no command: flags come before the node", command[0]))
			}
			line, err := s.Enter(args[0], command...)
			if err != nil {
				return clusterError(err)
			}
			return o.interactive([]string{"PATH=" + os.Getenv("PATH"), "HOME=/root", "LANG=C.UTF-8", "TERM=" + o.Getenv("TERM")}, line...)
		},
	}
	c.Flags().SetInterspersed(false) // flags after the node are the command's
	return nameFlag(c, &name)
}

// ownCluster reads the state of a cluster whose files this user can read.
func (o commands) ownCluster(name string) (*cluster.State, error) {
	s, err := o.cluster(name)
	if err == nil && os.Geteuid() != 0 && !s.ControlPlaneOnly {
		return nil, errors.New("a cluster with nodes belongs to root: run the command with sudo")
	}
	return s, err
}

// interactive runs the user's own command with this process's terminal, and returns its exit code as an error. The command itself has
// said why it failed.
func (o commands) interactive(env []string, command ...string) error {
	c := exec.Command(command[0], command[1:]...)
	c.Env, c.Stdin, c.Stdout, c.Stderr = env, os.Stdin, o.Out, o.Err
	stop := make(chan os.Signal, 1)
	defer close(stop)
	defer signal.Stop(stop)
	err := child.Run(c, syscall.SIGTERM, func(int) {
		signal.Notify(stop, syscall.SIGTERM) // the terminal sends Ctrl-C to the command, too
		go func() {
			for range stop {
				_ = c.Process.Signal(syscall.SIGTERM) // it may have ended
			}
		}()
	})
	exit, ended := errors.AsType[*exec.ExitError](err)
	if !ended {
		return err
	}
	code := exit.ExitCode()
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal()) // as shells say it
	}
	return session.ShownError{Err: session.CommandError{Err: fmt.Errorf("%s: %w", filepath.Base(command[0]), err), Code: code}}
}

func newClusterLogs(o commands) *cobra.Command {
	var name string
	var request cluster.LogOptions
	c := &cobra.Command{
		Use:   "logs [COMPONENT]",
		Short: "Print the logs of a component",
		Long: `logs prints the logs of a component: of a program in nodes (kubelet, containerd), of a process (etcd in a cluster without nodes),
or of the newest containers of a name in the namespace kube-system (kube-apiserver, coredns). If there are several logs, each line
begins with the node's name, and with that of the Pod if it is no static Pod. Without a component, logs lists them.`,
		Example: "  sudo slipway cluster logs kubelet --node slipway-2 --tail 20\n  sudo slipway cluster logs kube-scheduler --follow",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := o.ownCluster(name)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				names, err := s.LogNames()
				if err == nil && len(names) > 0 {
					_, err = fmt.Fprintln(o.Out, strings.Join(names, "\n"))
				}
				return err
			}
			err = s.Logs(c.Context(), args[0], request, func(from, line string) error {
				if from != "" {
					from = "[" + from + "] "
				}
				_, err := fmt.Fprintln(o.Out, from+line)
				return err
			})
			if request.Follow && errors.Is(err, context.Canceled) {
				return nil // Ctrl-C is how it ends
			}
			return err
		},
	}
	c.Flags().StringVar(&request.Node, "node", "", "the logs of this node (default of all nodes)")
	c.Flags().IntVar(&request.Last, "tail", -1, "how many of the last lines of each log; all if negative")
	c.Flags().BoolVarP(&request.Follow, "follow", "f", false, "also print lines as they are written, until Ctrl-C")
	return nameFlag(c, &name)
}
