package service

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service/httpserver"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

const soon = 10 * time.Second

// served is a demo site with the listener bounds of a spec.
type served struct {
	*Service
	addr string
	log  *gbytes.Buffer
}

func serveWithin(limits httpserver.Bounds, prepare ...func(*Service)) *served {
	GinkgoHelper()
	s := &served{log: gbytes.NewBuffer()}
	config := DefaultConfig()
	config.DataDir, config.Development, config.AdminAddr = GinkgoT().TempDir(), true, "127.0.0.1:0"
	config.Logger = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	listener, err := Config{Addr: "127.0.0.1:0"}.Listen()
	Expect(err).NotTo(HaveOccurred())
	s.addr = listener.Addr().String()
	config.Issuer = config.LocalIssuer(listener.Addr())
	ctx, stop := context.WithCancel(context.Background())
	s.Service, err = Open(ctx, *config)
	Expect(err).NotTo(HaveOccurred())
	s.bounds, s.operations.bounds = limits, limits
	for _, change := range prepare {
		change(s.Service)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	DeferCleanup(func() {
		stop()
		Eventually(ended).WithTimeout(2 * soon).Should(Receive(BeNil()))
		Expect(s.Close()).To(Succeed())
	})
	return s
}

// dial opens a connection with a deadline.
func dial(ctx context.Context, addr string) net.Conn {
	GinkgoHelper()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	Expect(conn.SetDeadline(time.Now().Add(soon))).To(Succeed())
	return conn
}

func say(conn net.Conn, request string) {
	GinkgoHelper()
	_, err := io.WriteString(conn, request)
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("Deadlines of the service's own listeners", Label("operations"), func() {
	short := func() httpserver.Bounds {
		b := httpserver.BoundsFor(100)
		b.Read, b.Write = 200*time.Millisecond, 500*time.Millisecond
		return b
	}

	DescribeTable("close a connection without a request body", func(ctx SpecContext, path string) {
		s := serveWithin(short())
		addr := s.addr
		if strings.HasPrefix(path, "admin ") {
			addr, path = s.AdminAddr().String(), strings.TrimPrefix(path, "admin ")
		}
		conn := dial(ctx, addr)
		say(conn, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n")
		_, err := io.Copy(io.Discard, conn)
		Expect(err).NotTo(HaveOccurred(), "the server has closed it")
	},
		Entry("to the root", "/"), Entry("to an unknown path", "/nothing"),
		Entry("to readiness", "admin /readyz"), Entry("to an unknown path of the admin listener", "admin /nothing"),
	)

	It("cut a response that the client does not read", func(ctx SpecContext) {
		wrote := make(chan error, 1)
		s := serveWithin(short(), func(s *Service) {
			s.Echo.GET("/large", func(c echo.Context) error {
				part, err := make([]byte, 1<<20), error(nil)
				for range 256 {
					if _, err = c.Response().Write(part); err != nil {
						break
					}
				}
				wrote <- err
				return err
			})
		})
		say(dial(ctx, s.addr), "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
		Eventually(wrote).WithTimeout(soon).Should(Receive(MatchError(ContainSubstring("timeout"))))
	})
})

var _ = Describe("The number of connections", Label("operations"), func() {
	It("comes from the limits of the process, and is logged at the start", func() {
		s := serveWithin(httpserver.BoundsFor(10))
		Expect(s.log).To(
			gbytes.Say(fmt.Sprintf(`limiting the connections .* connections=%d memory=\d+ files=\d+`,
				httpserver.ProcessCapacity().Connections())))
	})
})

func TestServer(t *testing.T) { suite.Run(t, "Server") }

var _ = Describe("Locking the data folder", func() {
	const issuer, other = "https://one.example", "https://other.example"

	It("refuses a service with another issuer while one runs", func() {
		dir := GinkgoT().TempDir()
		first, err := lockFolder(dir, issuer)
		Expect(err).NotTo(HaveOccurred())
		second, err := lockFolder(dir, issuer)
		Expect(err).NotTo(HaveOccurred())
		Expect(first.Close()).To(Succeed())
		_, err = lockFolder(dir, other)
		Expect(err).To(MatchError(And(ContainSubstring(issuer), ContainSubstring(dir), ContainSubstring("--data"))))
		Expect(second.Close()).To(Succeed())
		next, err := lockFolder(dir, other)
		Expect(err).NotTo(HaveOccurred(), "after all have ended")
		Expect(next.Close()).To(Succeed())
	})
})

var _ = Describe("Mistakes of a service", Label("F9", "configuration"), func() {
	It("are about settings that exist", func() {
		names, checked := DefaultConfig().Table().Names(), 0
		files, err := filepath.Glob("*.go")
		Expect(err).NotTo(HaveOccurred())
		named := regexp.MustCompile(`(?:NewMistake|mistaken|wrong)\("([^"]+)"`)
		for _, file := range files {
			source, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			for _, found := range named.FindAllStringSubmatch(string(source), -1) {
				Expect(names).To(ContainElement(found[1]), file)
				checked++
			}
		}
		Expect(checked).To(BeNumerically(">", 25))
	})

	It("are not about the defaults, which are those of a host", func() {
		config := DefaultConfig().authorization()
		for _, lifetime := range config.Lifetimes() {
			value := *lifetime.Value
			if value == 0 {
				value = oauth.Off
			}
			Expect(value).To(Equal(lifetime.Default), lifetime.Field)
		}
		Expect(config.Limits).To(Equal(oauth.DefaultLimits()))
	})
})

var _ = Describe("The command line of a program", Label("U23", "configuration"), func() {
	DescribeTable("is split without a shell:", func(line string, env map[string]string, words ...string) {
		p, err := parseProgram(line)
		Expect(err).NotTo(HaveOccurred())
		Expect(append([]string{p.Command}, p.Args...)).To(Equal(words))
		Expect(maps.Collect(maps.All(p.Env))).To(Equal(env))
	},
		Entry("at spaces", " npx  -y pkg ", map[string]string{}, "npx", "-y", "pkg"),
		Entry("outside of quotes", `sh -c 'a "b" $HOME' "it's" ''`, map[string]string{}, "sh", "-c", `a "b" $HOME`,
			"it's", ""),
		Entry("with variables before the command", `K={token} A='b c' cmd C=d`,
			map[string]string{"K": "{token}", "A": "b c"}, "cmd", "C=d"),
	)
})

// FuzzProgram reads what it has written.
func FuzzProgram(f *testing.F) {
	f.Fuzz(func(t *testing.T, line string) {
		p, err := parseProgram(line)
		if err != nil {
			return
		}
		again, err := parseProgram(formatProgram(p)[len(programPrefix):])
		if err != nil || !isSame(p, again) {
			t.Fatalf("%q is %q, then %q (%v)", line, p, again, err)
		}
	})
}

func isSame(a, b bootstrap.Upstream) bool {
	return a.Command == b.Command && slices.Equal(a.Args, b.Args) && maps.Equal(a.Env, b.Env)
}
