// Command csi-disk serves volumes on a node's disk to kubelets and to the controllers of the Container Storage Interface.
package main

import (
	"flag"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"slipway.build/cmd/csi-disk/disk"
)

func main() {
	folder := flag.String("folder", "/var/lib/kubelet/plugins/"+disk.Name, "where the driver listens, as csi.sock, and keeps its volumes")
	node := flag.String("node", "", "the node that has the volumes; without it, the driver answers only what needs no volume")
	registry := flag.String("registry", "/var/lib/kubelet/plugins_registry", "where the kubelet of the node looks for drivers")
	flag.Parse()
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	stop := make(chan struct{})
	go func() {
		<-ended
		close(stop)
	}()
	if err := disk.New(*folder, *node).Serve(*registry, stop); err != nil {
		klog.ErrorS(err, "csi-disk")
		klog.FlushAndExit(klog.ExitFlushTimeout, 1)
	}
}
