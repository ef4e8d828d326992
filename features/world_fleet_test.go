package features_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"github.com/pasteport/pasteport/features/engines"
)

// Fleet is several replicas of the built program on one database server, behind a round-robin
// proxy. Its issuer is the proxy's address.
type Fleet struct {
	*World
	Server   *engines.Server
	Replicas []*Member
}

// Member is one replica; it can be killed and started again at its address.
type Member struct {
	Address string // direct address, without the proxy
	start   func() *gexec.Session
	run     *gexec.Session
}

const fleetSize = 3

// NewFleet starts the replicas on an empty database; they end with the spec. The command is that of
// the demo site unless it is given.
func NewFleet(binary Binary, engine string, command ...string) *Fleet {
	GinkgoHelper()
	server := must(engines.Own(context.Background(), engine))
	DeferCleanup(server.Close)
	f := newFleet(binary, slices.Repeat([]string{must(server.Database(context.Background()))}, fleetSize), command...)
	f.Server = server
	return f
}

// newFleet starts a replica for each URL of the empty database.
func newFleet(binary Binary, databases []string, command ...string) *Fleet {
	GinkgoHelper()
	w := &World{
		Dir:      GinkgoT().TempDir(),
		Database: databases[0],
		Token:    editorToken,
		Clients:  NewClientSite(),
	}
	public := freeAddress()
	w.Issuer = "http://" + public
	if len(command) == 0 {
		command = []string{"serve", "--demo-token", w.Token}
	}
	f := &Fleet{World: w}
	var addresses []string
	for _, database := range databases {
		address := freeAddress()
		addresses = append(addresses, address)
		member := &Member{Address: "http://" + address}
		member.start = func() *gexec.Session {
			return binary.Run([]string{"SSL_CERT_FILE=" + w.Clients.Certificate(), "PASTEPORT_DATABASE=" + database},
				append(slices.Clone(command), "--dev", "--issuer", w.Issuer, "--addr", address, "--admin-addr", "off",
					"--data", w.Dir, "--advertise", member.Address, "--trusted-proxies", "127.0.0.1",
					"--log-level", "warn", "--max-grants-per-token", "100000",
					"--max-sessions-per-person", "10000")...) // one person stands for many
		}
		f.Replicas = append(f.Replicas, member)
	}
	f.Replicas[0].Start() // generates the server secret for all replicas
	for _, member := range f.Replicas[1:] {
		member.Start()
	}
	roundRobin(public, addresses)
	return f
}

func (m *Member) Start() {
	GinkgoHelper()
	m.run = m.start()
	Eventually(m.run.Out).WithTimeout(patience).Should(gbytes.Say("serving"))
}

// Kill ends the replica like a power failure.
func (m *Member) Kill() {
	GinkgoHelper()
	Eventually(m.run.Kill()).WithTimeout(patience).Should(gexec.Exit())
}

func (f *Fleet) At(replica int) *World {
	one := *f.World
	one.Issuer = f.Replicas[replica%len(f.Replicas)].Address
	return &one
}

// ForFleets skips the spec unless REPLICAS is set, as in .ci/run replicas.
func ForFleets() {
	GinkgoHelper()
	if os.Getenv("REPLICAS") == "" {
		Skip(".ci/run replicas runs this")
	}
}

// program is a program that a fleet needs.
func program(name string) Binary {
	GinkgoHelper()
	return Binary(must(exec.LookPath(name)))
}

// roundRobin is a proxy without sticky sessions that tries another replica when one cannot be
// reached.
func roundRobin(address string, upstreams []string) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	conf := "daemon off;\nmaster_process off;\npid " + filepath.Join(dir, "pid") +
		";\nerror_log stderr crit;\nevents { worker_connections 8192; }\nhttp {\n  access_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		conf += "  " + kind + "_temp_path " + filepath.Join(dir, kind) + ";\n"
	}
	conf += "  upstream replicas {\n"
	for _, upstream := range upstreams {
		conf += "    server " + upstream + " max_fails=1 fail_timeout=1s;\n"
	}
	conf += `  }
  server {
    listen ` + address + `;
    client_max_body_size 5m;
    location / {
      proxy_pass http://replicas;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_buffering off;
      proxy_read_timeout 1h;
    }
  }
}
`
	file := filepath.Join(dir, "nginx.conf")
	Expect(os.WriteFile(file, []byte(conf), 0o600)).To(Succeed())
	program("nginx").Run(nil, "-p", dir, "-e", "stderr", "-c", file)
	Eventually(func() error {
		answer, err := http.Get("http://" + address + "/")
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}).WithTimeout(patience).Should(Succeed())
}

func (f *Fleet) callAt(ctx context.Context, replica int, access string) Response {
	GinkgoHelper()
	return f.At(replica).Call(ctx, access)
}
