package features_test

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// clusterSettings is the output of "pasteport config" in the pod.
func clusterSettings(ctx SpecContext) map[string]any {
	GinkgoHelper()
	asInThePod()
	ran := Run(ctx, "config")
	Expect(ran.Code).To(BeZero(), ran.Err)
	return ran.Settings()
}

// asInThePod applies the settings of the pod, with its files in a temporary folder and an
// unreachable database.
func asInThePod() {
	GinkgoHelper()
	_, run := gatewayPod()
	settings, image := deployed("kubernetes/pasteport.yaml"), imageVariables()
	workingFolder()
	for name, value := range image {
		GinkgoT().Setenv(name, value)
	}
	for _, variable := range run.Env {
		GinkgoT().Setenv(variable.Name, variable.Value)
	}
	mounted := GinkgoT().TempDir()
	Expect(os.MkdirAll(filepath.Join(mounted, "database"), 0o700)).To(Succeed())
	write(filepath.Join(mounted, "database", "url"), "postgres://pasteport:password@127.0.0.1:1/pasteport")
	GinkgoT().Setenv("PASTEPORT_CONFIG",
		write("pasteport.yaml", strings.ReplaceAll(settings, "/etc/pasteport/", mounted+"/")))
}

// portOf returns the port of an address or a URL.
func portOf(address any) string {
	GinkgoHelper()
	if named, err := url.Parse(fmt.Sprint(address)); err == nil && named.Host != "" {
		return named.Port()
	}
	_, port, err := net.SplitHostPort(fmt.Sprint(address))
	Expect(err).NotTo(HaveOccurred())
	return port
}

var _ = Describe("Running on Kubernetes", Label("deployment", "kubernetes"), func() {
	It("has settings that the gateway accepts, and opens the ports in them", func(ctx SpecContext) {
		_, run := gatewayPod()
		Expect(run.Args).To(Equal([]string{"gateway"}))
		settings := clusterSettings(ctx)
		Expect(portOf(settings["addr"])).To(Equal(fmt.Sprint(run.port("http"))))
		Expect(settings["admin-addr"]).
			To(Equal(fmt.Sprintf(":%d", run.port("admin"))), "not on loopback, which probes cannot reach")
		Expect(settings["upstream"]).To(HaveLen(1))
	})

	It("stores no data in the pod", func(ctx SpecContext) {
		_, run := gatewayPod()
		asInThePod()
		started := Run(ctx,
			append(run.Args, "--addr=127.0.0.1:0", "--admin-addr=off", "--data="+GinkgoT().TempDir())...)
		Expect(started.Err).To(ContainSubstring("opening the OAuth database postgres://127.0.0.1:1/pasteport"))
	})

	It("has probes for the right address", func(ctx SpecContext) {
		service := Operate(func(config *service.Config) { config.AdminAddr = ":0" })
		_, run := gatewayPod()
		for _, asked := range []probe{run.StartupProbe, run.LivenessProbe, run.ReadinessProbe} {
			Expect(asked.HTTPGet.Port).To(Equal("admin"))
			Expect(asked.HTTPGet.Path).NotTo(BeEmpty())
			address := net.JoinHostPort(outside(), portOf(service.Admin)) // the kubelet connects to the pod's address
			Expect(Get(ctx, "http://"+address+asked.HTTPGet.Path).StatusCode).To(Equal(http.StatusOK))
		}
		Expect(run.ReadinessProbe.HTTPGet.Path).To(Equal("/readyz"))
	})

	It("finishes running requests before it is killed", func() {
		template, run := gatewayPod()
		takes := run.Lifecycle.PreStop.Sleep.Seconds + seconds("bootstrap/service/httpserver/server.go", "drainLimit") +
			seconds("adapters/journal/journal.go", "writeTimeout")
		Expect(run.Lifecycle.PreStop.Sleep.Seconds).NotTo(BeZero())
		Expect(template.Spec.Grace).To(BeNumerically(">", takes))
	})

	It("selects the same pods everywhere", func() {
		own := manifest[deployment]("Deployment", "pasteport").Spec
		Expect(own.Replicas).To(BeNumerically(">", 1))
		Expect(own.Selector.MatchLabels).NotTo(BeEmpty())
		selected := []labels{
			own.Selector.MatchLabels,
			manifest[struct{ Spec struct{ Selector labels } }]("Service", "pasteport").Spec.Selector,
			manifest[struct {
				Spec struct{ Selector selector }
			}]("PodDisruptionBudget", "pasteport").Spec.Selector.MatchLabels,
			manifest[networkPolicy]("NetworkPolicy", "pasteport").Spec.PodSelector.MatchLabels,
			manifest[networkPolicy]("NetworkPolicy", "mcp-server").Spec.Ingress[0].From[0].PodSelector.MatchLabels,
		}
		for _, preferred := range own.Template.Spec.Affinity.PodAntiAffinity.Preferred {
			selected = append(selected, preferred.Term.LabelSelector.MatchLabels)
		}
		for _, spread := range own.Template.Spec.Spread {
			selected = append(selected, spread.LabelSelector.MatchLabels)
		}
		Expect(selected).To(HaveLen(7))
		for _, labels := range selected {
			Expect(own.Template.Metadata.Labels).To(Equal(labels))
		}
	})

	It("is reachable from the Ingress through the Service at the issuer's host", func(ctx SpecContext) {
		_, run := gatewayPod()
		service := manifest[struct {
			Spec struct {
				Ports []struct {
					Name       string
					TargetPort string `yaml:"targetPort"`
				}
			}
		}]("Service", "pasteport")
		Expect(service.Spec.Ports).To(HaveLen(1), "the admin port is not exposed")
		Expect(fmt.Sprint(run.port(service.Spec.Ports[0].TargetPort))).
			To(Equal(portOf(imageVariables()["PASTEPORT_ADDR"])))
		entry := manifest[ingress]("Ingress", "pasteport")
		Expect(entry.Spec.Rules).To(HaveLen(1))
		backend := entry.Spec.Rules[0].HTTP.Paths[0].Backend.Service
		Expect(backend.Name).To(Equal("pasteport"))
		Expect(backend.Port.Name).To(Equal(service.Spec.Ports[0].Name))
		Expect("https://" + entry.Spec.Rules[0].Host).To(Equal(clusterSettings(ctx)["issuer"]))
		Expect(entry.Spec.TLS[0].Hosts).To(ConsistOf(entry.Spec.Rules[0].Host))
	})

	It("has the Ingress annotations that nginx needs for streams", func() {
		set := manifest[ingress]("Ingress", "pasteport").Metadata.Annotations
		const prefix = "nginx.ingress.kubernetes.io/"
		Expect(set).To(HaveKeyWithValue(prefix+"proxy-buffering", "off"))
		Expect(set).To(HaveKeyWithValue(prefix+"proxy-read-timeout", "3600"))
		Expect(deployed("nginx.conf")).
			To(And(ContainSubstring("proxy_buffering off;"), ContainSubstring("proxy_read_timeout 1h;")))
	})

	It("restricts access to the admin port and the upstream", func(ctx SpecContext) {
		_, run := gatewayPod()
		who := map[int][]string{}
		own := manifest[networkPolicy]("NetworkPolicy", "pasteport").Spec
		Expect(own.PolicyTypes).To(ConsistOf("Ingress", "Egress"))
		for _, rule := range own.Ingress {
			Expect(rule.From).To(HaveLen(1))
			Expect(rule.Ports).To(HaveLen(1))
			who[rule.Ports[0].Port] = append(who[rule.Ports[0].Port],
				cmp.Or(rule.From[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"],
					rule.From[0].PodSelector.MatchLabels["app.kubernetes.io/name"]))
		}
		Expect(who).To(Equal(map[int][]string{
			run.port("http"): {"ingress-nginx", "pasteport"}, run.port("admin"): {"monitoring"},
		}))
		Expect(own.Egress).To(ContainElement(SatisfyAll(
			HaveField("Ports", ConsistOf(HaveField("Port", run.port("http")))),
			HaveField("To", ConsistOf(HaveField("PodSelector.MatchLabels", own.PodSelector.MatchLabels))))))
		Expect(run.Env).To(ContainElement(And(HaveField("Name", "PASTEPORT_ADVERTISE"),
			HaveField("Value", fmt.Sprintf("http://$(POD_IP):%d", run.port("http"))))))
		guarded := manifest[networkPolicy]("NetworkPolicy", "mcp-server").Spec
		Expect(guarded.Ingress).To(HaveLen(1))
		Expect(own.Egress).To(ContainElement(SatisfyAll(
			HaveField("Ports", ConsistOf(HaveField("Port", guarded.Ingress[0].Ports[0].Port))),
			HaveField("To", ConsistOf(HaveField("PodSelector.MatchLabels", guarded.PodSelector.MatchLabels))))))
		Expect(clusterSettings(ctx)["upstream"]).To(HaveEach(HaveSuffix(":%d/mcp", guarded.Ingress[0].Ports[0].Port)))
	})

	It("mounts every file in the settings from a Secret that can be updated", func() {
		template, run := gatewayPod()
		volumes := map[string]volume{}
		for _, volume := range template.Spec.Volumes {
			volumes[volume.Name] = volume
		}
		settings := deployed("kubernetes/pasteport.yaml")
		secrets := 0
		for _, mount := range run.VolumeMounts {
			Expect(volumes).To(HaveKey(mount.Name))
			Expect(mount.SubPath).To(BeEmpty())
			Expect(mount.ReadOnly).To(Equal(mount.Name != "data"))
			name := volumes[mount.Name].Secret.SecretName
			if name == "" {
				continue
			}
			secrets++
			shape := manifest[struct {
				Data       map[string]string
				StringData map[string]string `yaml:"stringData"`
			}]("Secret", name)
			_, file, named := strings.Cut(settings, mount.MountPath+"/")
			Expect(named).To(BeTrue(), mount.MountPath)
			file, _, _ = strings.Cut(file, "\n")
			Expect(fmt.Sprint(shape)).To(ContainSubstring(file + ":"))
			Expect(volumes[mount.Name].Secret.DefaultMode).To(Equal("0440"))
		}
		Expect(secrets).To(Equal(2))
	})

	It("drops all privileges that it does not need", func() {
		template, run := gatewayPod()
		Expect(template.Spec.Automount).To(BeFalse())
		Expect(template.Spec.SecurityContext).
			To(And(HaveKeyWithValue("runAsNonRoot", true),
				HaveKeyWithValue("seccompProfile", HaveKeyWithValue("type", "RuntimeDefault"))))
		user := fmt.Sprint(template.Spec.SecurityContext["runAsUser"])
		Expect(deployed("Dockerfile")).
			To(ContainSubstring("USER " + user + ":" + fmt.Sprint(template.Spec.SecurityContext["fsGroup"]) + "\n"))
		Expect(run.SecurityContext).
			To(And(HaveKeyWithValue("readOnlyRootFilesystem", true),
				HaveKeyWithValue("allowPrivilegeEscalation", false),
				HaveKeyWithValue("capabilities", HaveKeyWithValue("drop", ConsistOf("ALL")))))
	})
})

type ingress struct {
	Metadata struct{ Annotations labels }
	Spec     struct {
		TLS   []struct{ Hosts []string }
		Rules []struct {
			Host string
			HTTP struct {
				Paths []struct {
					Backend struct {
						Service struct {
							Name string
							Port struct{ Name string }
						}
					}
				}
			}
		}
	}
}

type peer struct {
	NamespaceSelector selector `yaml:"namespaceSelector"`
	PodSelector       selector `yaml:"podSelector"`
}

type rule struct {
	From, To []peer
	Ports    []struct{ Port int }
}

type networkPolicy struct {
	Spec struct {
		PodSelector     selector `yaml:"podSelector"`
		PolicyTypes     []string `yaml:"policyTypes"`
		Ingress, Egress []rule
	}
}
