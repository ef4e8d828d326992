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
	"github.com/onsi/gomega/types"

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
	for _, variable := range at(run, "env").([]any) {
		value, _ := at(variable, "value").(string)
		GinkgoT().Setenv(at(variable, "name").(string), value)
	}
	mounted := GinkgoT().TempDir()
	Expect(os.MkdirAll(filepath.Join(mounted, "database"), 0o700)).To(Succeed())
	write(filepath.Join(mounted, "database", "url"), "postgres://pasteport:password@127.0.0.1:1/pasteport")
	GinkgoT().Setenv("PASTEPORT_CONFIG",
		write("pasteport.yaml", strings.ReplaceAll(settings, "/etc/pasteport/", mounted+"/")))
}

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
		Expect(at(run, "args")).To(Equal([]any{"gateway"}))
		settings := clusterSettings(ctx)
		Expect(portOf(settings["addr"])).To(Equal(fmt.Sprint(namedPort(run, "http"))))
		Expect(settings["admin-addr"]).
			To(Equal(fmt.Sprintf(":%d", namedPort(run, "admin"))), "not on loopback, which probes cannot reach")
		Expect(settings["upstream"]).To(HaveLen(1))
	})

	It("stores no data in the pod", func(ctx SpecContext) {
		asInThePod()
		started := Run(ctx, "gateway", "--addr=127.0.0.1:0", "--admin-addr=off", "--data="+GinkgoT().TempDir())
		Expect(started.Err).To(ContainSubstring("opening the OAuth database postgres://127.0.0.1:1/pasteport"))
	})

	It("has probes for the right address", func(ctx SpecContext) {
		service := Operate(func(config *service.Config) { config.AdminAddr = ":0" })
		_, run := gatewayPod()
		address := net.JoinHostPort(outside(), portOf(service.Admin)) // the kubelet connects to the pod's address
		for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
			Expect(at(run, probe+".httpGet.port")).To(Equal("admin"))
			path := at(run, probe+".httpGet.path").(string)
			Expect(path).NotTo(BeEmpty())
			Expect(Get(ctx, "http://"+address+path).StatusCode).To(Equal(http.StatusOK))
		}
		Expect(at(run, "readinessProbe.httpGet.path")).To(Equal("/readyz"))
	})

	It("finishes running requests before it is killed", func() {
		template, run := gatewayPod()
		sleeps := at(run, "lifecycle.preStop.sleep.seconds").(int)
		Expect(sleeps).NotTo(BeZero())
		Expect(at(template, "spec.terminationGracePeriodSeconds")).
			To(BeNumerically(">", sleeps+seconds("bootstrap/service/httpserver/server.go", "drainLimit")+
				seconds("adapters/journal/journal.go", "writeTimeout")))
	})

	It("selects the same pods everywhere", func() {
		own := at(manifest("Deployment", "pasteport"), "spec")
		Expect(at(own, "replicas")).To(BeNumerically(">", 1))
		Expect(at(own, "selector.matchLabels")).NotTo(BeEmpty())
		selected := []any{
			at(own, "selector.matchLabels"), at(manifest("Service", "pasteport"), "spec.selector"),
			at(manifest("PodDisruptionBudget", "pasteport"), "spec.selector.matchLabels"),
			at(manifest("NetworkPolicy", "pasteport"), "spec.podSelector.matchLabels"),
			at(manifest("NetworkPolicy", "mcp-server"), "spec.ingress.0.from.0.podSelector.matchLabels"),
		}
		pod := at(own, "template.spec")
		for _, preferred := range at(pod,
			"affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution").([]any) {
			selected = append(selected, at(preferred, "podAffinityTerm.labelSelector.matchLabels"))
		}
		for _, spread := range at(pod, "topologySpreadConstraints").([]any) {
			selected = append(selected, at(spread, "labelSelector.matchLabels"))
		}
		Expect(selected).To(And(HaveLen(7), HaveEach(Equal(at(own, "template.metadata.labels")))))
	})

	It("is reachable from the Ingress through the Service at the issuer's host", func(ctx SpecContext) {
		_, run := gatewayPod()
		ports := at(manifest("Service", "pasteport"), "spec.ports")
		Expect(ports).To(HaveLen(1), "the admin port is not exposed")
		Expect(fmt.Sprint(namedPort(run, at(ports, "0.targetPort")))).
			To(Equal(portOf(imageVariables()["PASTEPORT_ADDR"])))
		entry := at(manifest("Ingress", "pasteport"), "spec")
		Expect(at(entry, "rules")).To(HaveLen(1))
		backend := at(entry, "rules.0.http.paths.0.backend.service")
		Expect(at(backend, "name")).To(Equal("pasteport"))
		Expect(at(backend, "port.name")).To(Equal(at(ports, "0.name")))
		host := at(entry, "rules.0.host").(string)
		Expect("https://" + host).To(Equal(clusterSettings(ctx)["issuer"]))
		Expect(at(entry, "tls.0.hosts")).To(ConsistOf(host))
	})

	It("has the Ingress annotations that nginx needs for streams", func() {
		const prefix = "nginx.ingress.kubernetes.io/"
		Expect(at(manifest("Ingress", "pasteport"), "metadata.annotations")).To(And(
			HaveKeyWithValue(prefix+"proxy-buffering", "off"), HaveKeyWithValue(prefix+"proxy-read-timeout", "3600")))
		Expect(deployed("nginx.conf")).
			To(And(ContainSubstring("proxy_buffering off;"), ContainSubstring("proxy_read_timeout 1h;")))
	})

	It("restricts access to the admin port and the upstream", func(ctx SpecContext) {
		_, run := gatewayPod()
		own, guarded := at(manifest("NetworkPolicy", "pasteport"), "spec"),
			at(manifest("NetworkPolicy", "mcp-server"), "spec")
		Expect(at(own, "policyTypes")).To(ConsistOf("Ingress", "Egress"))
		who := map[any][]any{}
		for _, rule := range at(own, "ingress").([]any) {
			Expect(at(rule, "from")).To(HaveLen(1))
			Expect(at(rule, "ports")).To(HaveLen(1))
			space, _ := at(rule, "from.0.namespaceSelector.matchLabels").(map[string]any)
			pod, _ := at(rule, "from.0.podSelector.matchLabels").(map[string]any)
			port := at(rule, "ports.0.port")
			who[port] = append(who[port], cmp.Or(space["kubernetes.io/metadata.name"], pod["app.kubernetes.io/name"]))
		}
		Expect(who).To(Equal(map[any][]any{
			namedPort(run, "http"): {"ingress-nginx", "pasteport"}, namedPort(run, "admin"): {"monitoring"},
		}))
		permits := func(port, labels any) types.GomegaMatcher {
			return ContainElement(WithTransform(func(rule any) []any {
				return []any{at(rule, "ports.0.port"), at(rule, "ports.1"), at(rule, "to.0.podSelector.matchLabels"),
					at(rule, "to.1")}
			}, Equal([]any{port, nil, labels, nil})))
		}
		Expect(guarded).To(HaveKeyWithValue("ingress", HaveLen(1)))
		port := at(guarded, "ingress.0.ports.0.port")
		Expect(at(own, "egress")).To(And(permits(namedPort(run, "http"), at(own, "podSelector.matchLabels")),
			permits(port, at(guarded, "podSelector.matchLabels"))))
		Expect(at(run, "env")).To(ContainElement(Equal(map[string]any{"name": "PASTEPORT_ADVERTISE",
			"value": fmt.Sprintf("http://$(POD_IP):%d", namedPort(run, "http"))})))
		Expect(clusterSettings(ctx)["upstream"]).To(HaveEach(HaveSuffix(":%d/mcp", port)))
	})

	It("mounts every file in the settings from a Secret that can be updated", func() {
		template, run := gatewayPod()
		volumes := map[any]any{}
		for _, volume := range at(template, "spec.volumes").([]any) {
			volumes[at(volume, "name")] = volume
		}
		settings := deployed("kubernetes/pasteport.yaml")
		secrets := 0
		for _, mount := range at(run, "volumeMounts").([]any) {
			name := at(mount, "name")
			Expect(volumes).To(HaveKey(name))
			Expect(at(mount, "subPath")).To(BeNil())
			Expect(at(mount, "readOnly") == true).To(Equal(name != "data"))
			secret, isSecret := at(volumes[name], "secret.secretName").(string)
			if !isSecret {
				continue
			}
			secrets++
			_, file, named := strings.Cut(settings, at(mount, "mountPath").(string)+"/")
			Expect(named).To(BeTrue(), "%v", mount)
			file, _, _ = strings.Cut(file, "\n")
			Expect(fmt.Sprint(manifest("Secret", secret))).To(ContainSubstring(file + ":"))
			Expect(at(volumes[name], "secret.defaultMode")).To(Equal(0o440))
		}
		Expect(secrets).To(Equal(2))
	})

	It("drops all privileges that it does not need", func() {
		template, run := gatewayPod()
		Expect(at(template, "spec.automountServiceAccountToken")).To(BeFalse())
		security := at(template, "spec.securityContext")
		Expect(security).To(And(HaveKeyWithValue("runAsNonRoot", true),
			HaveKeyWithValue("seccompProfile", HaveKeyWithValue("type", "RuntimeDefault"))))
		Expect(deployed("Dockerfile")).To(ContainSubstring(
			fmt.Sprintf("USER %v:%v\n", at(security, "runAsUser"), at(security, "fsGroup"))))
		Expect(at(run, "securityContext")).To(And(HaveKeyWithValue("readOnlyRootFilesystem", true),
			HaveKeyWithValue("allowPrivilegeEscalation", false),
			HaveKeyWithValue("capabilities", HaveKeyWithValue("drop", ConsistOf("ALL")))))
	})
})
