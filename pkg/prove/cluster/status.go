package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"slipway.build/pkg/prove/cluster/kubeadm"
	"slipway.build/pkg/prove/cluster/machine"
)

// A Status is the condition of a cluster at one moment.
type Status struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	State      string `json:"state"` // ready, upgrading (to another release), broken (a process has ended) or unfinished (Up was cut off)
	Kubeconfig string `json:"kubeconfig"`
	Registry   string `json:"registry,omitempty"` // host and port of the registry that nodes pull from
	Parts      []Part `json:"parts"`

	Programs  []Program `json:"programs,omitempty"`  // that run instead of the release's
	Unsettled []string  `json:"unsettled,omitempty"` // programs whose replacement was cut off

	Addons   []string          `json:"addons,omitempty"`   // that were added
	Settings []kubeadm.Setting `json:"settings,omitempty"` // that differ from slipway's

	Hollow *Hollow `json:"hollowNodes,omitempty"`
}

// Hollow says how many hollow nodes there are. They are Pods, and have no process among the parts.
type Hollow struct {
	Wanted int `json:"wanted"`
	Ready  int `json:"ready"` // by the API server
}

// A Part is a node or a program of the control plane.
type Part struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
	PID     int    `json:"pid"`
	State   string `json:"state"` // running or ended; for a node, also Ready, NotReady or unknown by the API server
}

// Status returns the status of a cluster.
func (s *State) Status(ctx context.Context) Status {
	st := Status{Name: s.Name, Version: s.Version, State: "unfinished", Kubeconfig: s.Kubeconfig(), Registry: string(s.registry()),
		Unsettled: s.Unsettled, Addons: s.Addons, Settings: s.Settings.List()}
	switch {
	case !s.Ready:
	case !s.running():
		st.State = "broken"
	case s.Upgrade != nil:
		st.State = "upgrading"
	default:
		st.State = "ready"
	}
	for _, p := range slices.Concat(s.Programs, s.Replaced) {
		st.Programs = append(without(st.Programs, p.Name), p)
	}
	ready := s.nodesReady(ctx, &st)
	for _, p := range s.Processes {
		part := Part{Name: p.Name, Address: p.Address, PID: p.PID, State: "ended"}
		if p.Name == switchName {
			part.Address = st.Registry // which runs there
		}
		if s.Boot == machine.BootID() && p.Alive() {
			part.State = "running"
			if of, ok := ready[p.Name]; ok {
				part.State = of
			}
		}
		st.Parts = append(st.Parts, part)
	}
	return st
}

// nodesReady returns the states of the nodes by the API server, and adds the hollow ones to a status.
func (s *State) nodesReady(ctx context.Context, st *Status) map[string]string {
	ready := map[string]string{}
	if s.HollowNodes > 0 {
		st.Hollow = &Hollow{Wanted: s.HollowNodes}
	}
	for _, n := range s.Nodes() {
		ready[n.Name] = "unknown"
	}
	if s.RuntimeOnly || len(ready) == 0 {
		return nil
	}
	limit, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	nodes, err := s.readyNodes(limit)
	if err != nil {
		return ready
	}
	for name, is := range nodes {
		_, real := ready[name]
		switch {
		case !real && is && st.Hollow != nil:
			st.Hollow.Ready++
		case is:
			ready[name] = "Ready"
		default:
			ready[name] = "NotReady"
		}
	}
	return ready
}

// Text writes a status as a table.
func (s Status) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "CLUSTER\tSTATE\tPART\tADDRESS\tPID\tSTATE OF PART")
	for _, p := range s.Parts {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n", s.Name, s.State, p.Name, cmp.Or(p.Address, "-"), p.PID, p.State)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if h := s.Hollow; h != nil {
		fmt.Fprintf(t, "\nHOLLOW NODES\tREADY\n%d\t%d\n", h.Wanted, h.Ready)
	}
	if len(s.Addons) > 0 {
		fmt.Fprintf(t, "\nAddons: %s\n", strings.Join(s.Addons, ", "))
	}
	if len(s.Settings) > 0 {
		fmt.Fprintln(t, "\nSETTING\tFIELD\tVALUE")
		for _, set := range s.Settings {
			fmt.Fprintf(t, "%s\t%s\t%s\n", set.Kind, set.Field, set.Value)
		}
	}
	if len(s.Programs)+len(s.Unsettled) == 0 {
		return t.Flush()
	}
	fmt.Fprintln(t, "\nNOT OF THE RELEASE\tVERSION\tSHA-256\tSINCE\tFROM")
	for _, p := range s.Programs {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", p.Name, p.Version, p.SHA256[:12], p.Since.Format(time.DateTime), p.From)
	}
	for _, name := range s.Unsettled {
		fmt.Fprintf(t, "%s\t?\t?\t?\tits replacement was cut off\n", name)
	}
	return t.Flush()
}

// JSON writes a status as a line of JSON.
func (s Status) JSON(w io.Writer) error { return json.NewEncoder(w).Encode(s) }
