// Command gateway is the service of "pasteport gateway" in front of the Go SDK's server, which runs
// in a process of its own, and the standard library's reverse proxy in its place.
package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pasteport/pasteport/bench/load"
	"github.com/pasteport/pasteport/bench/server"
	"github.com/pasteport/pasteport/bench/server/site"
	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/service"
)

func main() {
	server.Main(map[string]server.Open{"pasteport-gateway": open, "reverse-proxy": openProxy})
}

// openProxy is the least that a gateway in Go does.
func openProxy(server.Order, string) (server.Site, error) {
	upstream, err := startUpstream()
	if err != nil {
		return server.Site{}, fmt.Errorf("starting the upstream: %w", err)
	}
	target, err := url.Parse(upstream.url)
	if err != nil {
		return server.Site{}, errors.Join(err, upstream.stop())
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(target) },
		Transport: &http.Transport{MaxIdleConnsPerHost: 128, DisableCompression: true},
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // without it, early responses are truncated
		proxy.ServeHTTP(w, r)
	})
	return server.Site{Handler: handler, Close: upstream.stop}, nil
}

func open(order server.Order, address string) (server.Site, error) {
	upstream, err := startUpstream()
	if err != nil {
		return server.Site{}, fmt.Errorf("starting the upstream: %w", err)
	}
	verifier, err := openVerifier()
	if err != nil {
		return server.Site{}, errors.Join(err, upstream.stop())
	}
	config := service.DefaultConfig()
	config.RootCAs = x509.NewCertPool()
	config.RootCAs.AppendCertsFromPEM(order.Roots)
	config.Issuer, config.Development, config.DataDir, config.Logger = address, true, order.Dir, site.Quiet()
	config.AdminAddr = service.AdminOff
	config.Verification = service.Verification{Verifier: service.VerifierHTTP, VerifyURL: verifier.url}
	config.Gateway.Upstreams = []service.Upstream{{Upstream: bootstrap.Upstream{URL: upstream.url + "/mcp"}}}
	opened, err := service.Open(context.Background(), *config)
	if err != nil {
		return server.Site{}, errors.Join(err, verifier.Close(), upstream.stop())
	}
	end := func() error {
		opened.Drain()
		return errors.Join(opened.Close(), verifier.Close(), upstream.stop())
	}
	return server.Site{Handler: opened.Echo, Close: end}, nil
}

// upstream is the program sdk, on the same CPU as this process.
type upstream struct {
	url  string
	stop func() error
}

func startUpstream() (upstream, error) {
	self, err := os.Executable()
	if err != nil {
		return upstream{}, err
	}
	command := exec.Command(filepath.Join(filepath.Dir(self), "sdk"), "sdk")
	command.Stderr = os.Stderr
	orders, err := command.StdinPipe()
	if err != nil {
		return upstream{}, err
	}
	answers, err := command.StdoutPipe()
	if err != nil {
		return upstream{}, err
	}
	if err := command.Start(); err != nil {
		return upstream{}, err
	}
	stop := func() error { return errors.Join(orders.Close(), command.Wait()) }
	if err := json.NewEncoder(orders).Encode(server.Order{}); err != nil {
		return upstream{}, errors.Join(err, stop())
	}
	var greeting server.Greeting
	line, err := bufio.NewReader(answers).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &greeting)
	}
	if err != nil {
		return upstream{}, errors.Join(fmt.Errorf("reading its greeting: %w", err), stop())
	}
	return upstream{greeting.URL, stop}, nil
}

// verifier verifies the pasted tokens, at login only.
type verifier struct {
	*http.Server
	url string
}

func openVerifier() (verifier, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return verifier{}, err
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !load.IsHostToken(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	v := verifier{&http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}, "http://" + listener.Addr().String()}
	go func() { _ = v.Serve(listener) }() // ends with http.ErrServerClosed
	return v, nil
}
