package features_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	"go.yaml.in/yaml/v3"

	"github.com/pasteport/pasteport/features/engines"
)

// Proxy starts a proxy program at this address in front of the service, with its file from deploy/,
// and returns the CA file for its certificate. The pairs of texts are replaced in the file.
type Proxy func(address, upstream string, exchange ...string) (authority string)

// Deployed is the built service behind a proxy. Clients connect from another loopback address than
// the proxy's.
type Deployed struct {
	*Operated
	Listens     string // the service itself
	authorities string // CA file for the proxy and the client site
	run         *gexec.Session
}

const peopleAddress = "127.0.0.2"

// Deploy starts both; they end with the spec. The service trusts forwarding headers from these
// networks.
func Deploy(binary Binary, proxy Proxy, trusted string, exchange ...string) *Deployed {
	GinkgoHelper()
	return deploy(binary, []string{"serve", "--demo-token", editorToken}, proxy, trusted, exchange...)
}

// DeployGateway is Deploy for a gateway to the upstream.
func DeployGateway(binary Binary, upstream *UpstreamServer, proxy Proxy) *Deployed {
	GinkgoHelper()
	d := deploy(binary, []string{"gateway", "--upstream", upstream.URL + "/mcp"}, proxy, "127.0.0.1")
	d.Token = apiKey
	return d
}

func deploy(binary Binary, command []string, proxy Proxy, trusted string, exchange ...string) *Deployed {
	GinkgoHelper()
	public, upstream, admin := freeAddress(), freeAddress(), freeAddress()
	_, port, err := net.SplitHostPort(public)
	Expect(err).NotTo(HaveOccurred())
	world := &World{
		Issuer:  "https://localhost:" + port,
		Dir:     GinkgoT().TempDir(),
		Token:   editorToken,
		Clients: NewClientSite(),
	}
	d := &Deployed{Operated: &Operated{World: world, Admin: "http://" + admin}, Listens: "http://" + upstream}
	d.run = binary.Run([]string{"SSL_CERT_FILE=" + world.Clients.Certificate()}, append(command,
		"--dev", "--issuer", world.Issuer, "--addr", upstream, "--admin-addr", admin, "--data", world.Dir,
		"--trusted-proxies", trusted)...)
	Eventually(d.run.Out).WithTimeout(patience).Should(gbytes.Say("serving"))
	authority := proxy(public, upstream, exchange...)
	Eventually(shakesHands).WithArguments(public).WithTimeout(patience).Should(Succeed())
	d.trust(authority)
	return d
}

// shakesHands fails until a TLS handshake succeeds.
func shakesHands(address string) error {
	conn, err := tls.Dial("tcp", address, &tls.Config{ServerName: "localhost", InsecureSkipVerify: true})
	if err != nil {
		return err
	}
	return conn.Close()
}

// freeAddress returns an unused loopback address.
func freeAddress() string {
	GinkgoHelper()
	return fmt.Sprintf("127.0.0.1:%d", must(engines.FreePort()))
}

// trust makes the spec's own clients trust the CA and connect from the clients' address.
func (d *Deployed) trust(authority string) {
	GinkgoHelper()
	vouching := must(os.ReadFile(authority))
	own := must(os.ReadFile(d.Clients.Certificate()))
	d.authorities = filepath.Join(GinkgoT().TempDir(), "authorities.pem")
	Expect(os.WriteFile(d.authorities, append(vouching, own...), 0o600)).To(Succeed())

	before := http.DefaultTransport.(*http.Transport)
	transport := before.Clone()
	roots := x509.NewCertPool()
	if before.TLSClientConfig != nil && before.TLSClientConfig.RootCAs != nil {
		roots = before.TLSClientConfig.RootCAs.Clone()
	}
	Expect(roots.AppendCertsFromPEM(vouching)).To(BeTrue())
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	people := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(peopleAddress)}}
	transport.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) {
		return people.DialContext(ctx, "tcp4", address)
	}
	http.DefaultTransport = transport
	DeferCleanup(func() {
		http.DefaultTransport = before
		transport.CloseIdleConnections()
	})
}

// Open opens the HTTP+SSE stream and returns its non-empty lines as they arrive.
func (d *Deployed) Open(ctx context.Context, access string) (lines chan string) {
	GinkgoHelper()
	r := (&Conversation{World: d.World, Revision: httpSSE, Access: access}).Request(ctx, http.MethodGet)
	answer, err := http.DefaultTransport.RoundTrip(r) // without a timeout
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.StatusCode).To(Equal(http.StatusOK))
	lines = make(chan string)
	go readLines(ctx, answer.Body, lines)
	return lines
}

// asked finds a program. The spec is skipped unless PROXIES is set, as in .ci/run, where a missing
// program fails the spec.
func asked(program string) Binary {
	GinkgoHelper()
	if os.Getenv("PROXIES") == "" {
		Skip(".ci/run proxies runs this")
	}
	return Binary(must(exec.LookPath(program)))
}

// deployed returns a file of deploy/ with some texts replaced, each of which must occur.
func deployed(name string, exchange ...string) string {
	GinkgoHelper()
	text := must(os.ReadFile(filepath.Join("..", "deploy", name)))
	for i := 0; i+1 < len(exchange); i += 2 {
		Expect(string(text)).To(ContainSubstring(exchange[i]))
	}
	return strings.NewReplacer(exchange...).Replace(string(text))
}

// caddyProxy uses Caddy's internal CA for localhost, without installing it in the system.
func caddyProxy(address, upstream string, exchange ...string) string {
	GinkgoHelper()
	program, dir := asked("caddy"), GinkgoT().TempDir()
	const here = "{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n}\n"
	file := filepath.Join(dir, "Caddyfile")
	Expect(os.WriteFile(file, []byte(here+deployed("Caddyfile", exchange...)), 0o600)).To(Succeed())
	_, port, err := net.SplitHostPort(address)
	Expect(err).NotTo(HaveOccurred())
	program.Run([]string{"DOMAIN=https://localhost:" + port, "UPSTREAM=" + upstream, "HOME=" + dir,
		"XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir},
		"run", "--config", file, "--adapter", "caddyfile")
	authority := filepath.Join(dir, "caddy", "pki", "authorities", "local", "root.crt")
	Eventually(authority).WithTimeout(patience).Should(BeAnExistingFile())
	return authority
}

// nginxProxy has a self-signed certificate.
func nginxProxy(address, upstream string, exchange ...string) string {
	GinkgoHelper()
	program, dir, files := asked("nginx"), GinkgoT().TempDir(), NewCertificateFiles(1, time.Hour)
	server := filepath.Join(dir, "server.conf")
	Expect(os.WriteFile(server, []byte(deployed("nginx.conf", append(exchange,
		"    listen 80;\n    listen [::]:80;", "    listen "+freeAddress()+";", "    listen [::]:443 ssl http2;\n", "",
		"listen 443", "listen "+address, "server_name mcp.example.com", "server_name localhost",
		"http://127.0.0.1:8080", "http://"+upstream,
		"/etc/letsencrypt/live/mcp.example.com/fullchain.pem", files.Cert,
		"/etc/letsencrypt/live/mcp.example.com/privkey.pem", files.Key,
	)...)), 0o600)).To(Succeed())
	main := "daemon off;\npid " + filepath.Join(dir, "pid") +
		";\nerror_log stderr;\nworker_processes 1;\nevents {}\nhttp {\n  access_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		main += "  " + kind + "_temp_path " + filepath.Join(dir, kind) + ";\n"
	}
	file := filepath.Join(dir, "nginx.conf")
	Expect(os.WriteFile(file, []byte(main+"  include "+server+";\n}\n"), 0o600)).To(Succeed())
	run := program.Run(nil, "-p", dir, "-c", file, "-e", "stderr")
	DeferCleanup(func() { run.Terminate().Wait(patience) }) // a kill would leave its worker running
	return files.Cert
}

// cluster is the folder with the manifests.
var cluster = filepath.Join("..", "deploy", "kubernetes")

// manifest reads the object of this kind and name from the manifests.
func manifest(kind, name string) (found map[string]any) {
	GinkgoHelper()
	for _, file := range must(filepath.Glob(filepath.Join(cluster, "*.yaml"))) {
		documents := yaml.NewDecoder(strings.NewReader(textOf(file)))
		for {
			var document map[string]any
			err := documents.Decode(&document)
			if errors.Is(err, io.EOF) {
				break
			}
			Expect(err).NotTo(HaveOccurred(), file)
			if document["kind"] == kind && at(document, "metadata.name") == name {
				Expect(found).To(BeNil(), kind+" "+name)
				found = document
			}
		}
	}
	Expect(found).NotTo(BeNil(), kind+" "+name)
	return found
}

// at returns the part of a manifest at a path of names and numbers, nil where there is none.
func at(part any, path string) any {
	for step := range strings.SplitSeq(path, ".") {
		switch within := part.(type) {
		case map[string]any:
			part = within[step]
		case []any:
			number, err := strconv.Atoi(step)
			Expect(err).NotTo(HaveOccurred(), path)
			if part = nil; number < len(within) {
				part = within[number]
			}
		default:
			return nil
		}
	}
	return part
}

func namedPort(container, name any) any {
	for _, port := range at(container, "ports").([]any) {
		if at(port, "name") == name {
			return at(port, "containerPort")
		}
	}
	return nil
}

func gatewayPod() (template, container any) {
	GinkgoHelper()
	template = at(manifest("Deployment", "pasteport"), "spec.template")
	Expect(at(template, "spec.containers")).To(HaveLen(1))
	return template, at(template, "spec.containers.0")
}

func imageVariables() map[string]string {
	GinkgoHelper()
	line := regexp.MustCompile(`(?m)^ENV (.*)$`).FindStringSubmatch(deployed("Dockerfile"))
	Expect(line).To(HaveLen(2))
	set := map[string]string{}
	for _, pair := range strings.Fields(line[1]) {
		name, value, _ := strings.Cut(pair, "=")
		set[name] = value
	}
	return set
}

// seconds returns a constant of the program's source that is not a setting.
func seconds(file, constant string) int {
	GinkgoHelper()
	text := must(os.ReadFile(filepath.Join("..", file)))
	found := regexp.MustCompile(constant + `\s+= (\d+) \* time\.Second`).FindSubmatch(text)
	Expect(found).To(HaveLen(2), constant)
	return must(strconv.Atoi(string(found[1])))
}
