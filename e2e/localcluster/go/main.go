// Command localcluster is every Kubernetes component of the test cluster in one binary: one link step
// instead of seven, and one file to cache.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// components maps a component's name to its entry point. Each finds its own name as os.Args[0], as it would
// in a binary of its own.
var components = map[string]func(){
	"coredns":                 runCoreDNS,
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          command(func() *cobra.Command { return apiserver.NewAPIServerCommand() }),
	"kube-controller-manager": command(func() *cobra.Command { return controllermanager.NewControllerManagerCommand() }),
	"kube-scheduler":          command(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubelet":                 command(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"kube-proxy":              command(func() *cobra.Command { return proxy.NewProxyCommand() }),
}

func command(build func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(build())) }
}

// runCoreDNS links only the plugins that the cluster's Corefile uses; the order of this list is the order in
// which a query passes them.
func runCoreDNS() {
	dnsserver.Directives = []string{"bind", "ready", "errors", "cache", "kubernetes"}
	coremain.Run()
}

func usage() string {
	names := slices.Sorted(maps.Keys(components))
	return fmt.Sprintf("usage: localcluster {%s} [flags]", strings.Join(names, "|"))
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage())
		os.Exit(2)
	}
	run, known := components[os.Args[1]]
	if !known {
		fmt.Fprintf(os.Stderr, "localcluster: unknown component %q\n%s\n", os.Args[1], usage())
		os.Exit(2)
	}
	os.Args = os.Args[1:]
	run()
}
