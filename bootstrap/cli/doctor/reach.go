package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"time"
)

const (
	expiryWarning = 14 * 24 * time.Hour
	clockWarning  = 30 * time.Second
	clockFailure  = 2 * time.Minute
)

var reachChecks = []check{
	{
		id: "reach.connect", question: "Can the server be reached?",
		why:    "Every other check needs a connection.",
		breaks: everyClient, run: (*examination).connect,
	},
	{
		id: "tls.certificate", question: "Is the connection protected by a certificate that clients trust?",
		needs: []string{"reach.connect"},
		why: "Tokens travel on this connection; clients give up when its certificate is invalid, most of them " +
			"without a message.",
		breaks: everyClient, run: (*examination).certificate,
	},
	{
		id: "reach.answer", question: "Does the server respond to HTTP requests?", needs: []string{"tls.certificate"},
		why:    "A client starts with a request without a token.",
		breaks: everyClient, run: (*examination).answers,
	},
	{
		id: "reach.clock", question: "Is the server's clock right?", needs: []string{"reach.answer"},
		why: "Codes, tokens and signed assertions are valid for minutes. With a wrong clock they expire too early or " +
			"too late, " +
			"and the certificates of other servers look invalid.",
		breaks: []string{"clients that sign assertions (" + chatGPT + " prefers to)", "eventually every client"},
		run:    (*examination).clock,
	},
}

func (e *examination) address() string {
	if e.Endpoint.Port() != "" {
		return e.Endpoint.Host
	}
	return net.JoinHostPort(e.Endpoint.Hostname(), e.Endpoint.Scheme) // package net resolves the scheme to a port
}

func (e *examination) connect(ctx context.Context) checkResult {
	dialer := net.Dialer{Timeout: e.Limit}
	connection, err := dialer.DialContext(ctx, "tcp", e.address())
	var unknown *net.DNSError
	switch {
	case errors.As(err, &unknown):
		return fail("Check the spelling, and publish a DNS record for the name.", "%v", err)
	case err != nil:
		return fail("Start the server, and open its port in every firewall on the path.", "%v", err)
	}
	defer connection.Close()
	return ok("connected to %s", connection.RemoteAddr())
}

func (e *examination) certificate(ctx context.Context) checkResult {
	if e.Endpoint.Scheme == "http" {
		if IsLoopback(e.Endpoint) {
			return ok("http on this computer, which needs no certificate")
		}
		return fail("Put a TLS server in front, and give people the https URL.",
			"the URL is http, and not on this computer")
	}
	ctx, cancel := context.WithTimeout(ctx, e.Limit)
	defer cancel()
	dialer := tls.Dialer{Config: e.wire.transport.TLSClientConfig.Clone()}
	connection, err := dialer.DialContext(ctx, "tcp", e.address())
	if err != nil {
		return fail(mendCertificate(err), "%v", e.wire.explainTimeout(err))
	}
	defer connection.Close()
	leaf := connection.(*tls.Conn).ConnectionState().PeerCertificates[0]
	until := leaf.NotAfter.UTC().Format("2 January 2006")
	if leaf.NotAfter.Sub(e.Now()) < expiryWarning {
		return warn("Renew it now, and find out why automatic renewal failed.",
			"the certificate is valid until %s only", until)
	}
	return ok("the certificate is trusted and valid until %s", until)
}

func mendCertificate(err error) string {
	var invalid x509.CertificateInvalidError
	var elsewhere x509.HostnameError
	var untrusted x509.UnknownAuthorityError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "Renew the certificate, and let the server load the new one. If it was renewed, check the clock of " +
			"this computer."
	case errors.As(err, &elsewhere):
		return "Get a certificate for the name in the URL, or give people a URL with the name in the certificate."
	case errors.As(err, &untrusted):
		return "Serve the whole chain, with the intermediate certificates, from a public authority. " +
			"If only people with your own authority connect, name it with --ca."
	}
	return "Serve TLS 1.2 or newer on this port, with a certificate for the name in the URL."
}

// initialize is the first message of a client.
const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{` +
	`"protocolVersion":"2025-06-18","capabilities":{},` +
	`"clientInfo":{"name":"pasteport-doctor","version":"1"}}}`

// call sends the first message of a client to the MCP endpoint.
func (e *examination) call(ctx context.Context, header ...string) answer {
	return e.callAt(ctx, e.Endpoint.String(), header...)
}

func (e *examination) callAt(ctx context.Context, address string, header ...string) answer {
	return e.wire.send(ctx, request{
		method: http.MethodPost, url: address, body: initialize,
		header: append([]string{"Content-Type", "application/json", "Accept", "application/json, " + eventStream},
			header...),
	})
}

func (e *examination) answers(ctx context.Context) checkResult {
	if e.first = e.call(ctx); e.first.err != nil {
		return fail("Check that the server runs and that the proxy in front of it reaches it.", "%s", e.first)
	}
	return ok("%s", e.first)
}

func (e *examination) clock(context.Context) checkResult {
	const mend = "Set the clock with a time service (chrony, systemd-timesyncd). If the server's clock is right, " +
		"correct this computer's."
	date, err := http.ParseTime(e.first.header.Get("Date"))
	if err != nil {
		return skip("because the response has no valid Date header")
	}
	ahead := date.Sub(e.Now()).Round(time.Second)
	where := "ahead of"
	if ahead < 0 {
		where = "behind"
	}
	switch off := ahead.Abs(); {
	case off >= clockFailure:
		return fail(mend, "its clock is %s %s this computer's", off, where)
	case off >= clockWarning:
		return warn(mend, "its clock is %s %s this computer's", off, where)
	}
	return ok("its clock agrees with this computer's")
}
