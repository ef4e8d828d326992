package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// step is one action of the newcomer; seen describes the result.
type step struct {
	name     string
	patience time.Duration
	act      func(context.Context) (seen string, err error)
}

func (s step) take(ctx context.Context) (seen string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.patience, fmt.Errorf("not within %s", s.patience))
	defer cancel()
	return s.act(ctx)
}

const patience = 30 * time.Second

func (n *newcomer) story() []step {
	return []step{
		{"install it as README.md says", limit, n.install},
		{"start the demo", patience, n.startDemo},
		{"open the address on a phone", patience, n.openConsent},
		{"paste a wrong token", patience, n.pasteWrongToken},
		{"paste the token and approve", patience, n.approve},
		{"press Enter for a call", patience, n.call},
		{"see the connection on its page", patience, n.seeConnection},
		{"end it", patience, n.endConnection},
		{"press Enter for another call", patience, n.callInVain},
		{"list the connections", patience, n.listConnections},
		{"trace this one", patience, n.trace},
		{"leave with Ctrl-C", patience, n.stopDemo},
	}
}

func (n *newcomer) install(ctx context.Context) (_ string, err error) {
	lines, _, err := n.advice()
	if err != nil {
		return "", err
	}
	if n.first, err = n.terminal.open(ctx, "demo", n.clone); err != nil {
		return "", err
	}
	for _, line := range lines {
		if _, err := n.first.runs(ctx, line); err != nil {
			return "", err
		}
	}
	return strings.Join(lines, "; "), nil
}

func (n *newcomer) startDemo(ctx context.Context) (string, error) {
	_, line, err := n.advice()
	if err != nil {
		return "", err
	}
	if err := n.first.types(ctx, line); err != nil {
		return "", err
	}
	if _, err := n.first.sees(ctx, `^9\. .+\n   ok, `); err != nil {
		return "", err
	}
	told, err := n.first.sees(ctx, `^Your turn\.(?s:.+?)^(http://\S+)$(?s:.+?)^demo token: (\S+)$`)
	if err != nil {
		return "", err
	}
	n.address, n.token = told[1], told[2]
	return "nine steps, then an address and a token", nil
}

func (n *newcomer) openConsent(ctx context.Context) (_ string, err error) {
	if n.phone, err = openPhone(ctx); err != nil {
		return "", err
	}
	if err := n.phone.visits(ctx, n.address); err != nil {
		return "", err
	}
	return "the consent page",
		n.phone.sees(ctx, "1-consent", "Pasteport demo client", "(unverified)", "to Demo site?",
			"goes to a program on this computer")
}

func (n *newcomer) pasteWrongToken(ctx context.Context) (string, error) {
	if err := n.phone.pastes(ctx, n.token+"X"); err != nil {
		return "", err
	}
	if err := n.phone.taps(ctx, "Approve"); err != nil {
		return "", err
	}
	return "the page says so and asks again", n.phone.sees(ctx, "2-wrong-token", "This site does not know that token.")
}

func (n *newcomer) approve(ctx context.Context) (string, error) {
	if err := n.phone.pastes(ctx, n.token); err != nil {
		return "", err
	}
	if err := n.phone.taps(ctx, "Approve"); err != nil {
		return "", err
	}
	if err := n.phone.sees(ctx, "3-connected", "The client has the answer."); err != nil {
		return "", err
	}
	told, err := n.first.sees(ctx,
		`^Connected: .+$(?s:.+?)^(http://\S+/oauth/connections)$(?s:.+?)^(.+ connections --data `+
			`.+)$\n^(.+ trace --data .+)$`)
	if err != nil {
		return "", err
	}
	n.connections, n.listing, n.tracing = told[1], told[2], told[3]
	return "connected, says the page, and what to do next, says the terminal", nil
}

func (n *newcomer) call(ctx context.Context) (string, error) {
	if err := n.first.presses(ctx, "Enter"); err != nil {
		return "", err
	}
	told, err := n.first.sees(ctx, `^Answered: (the client called \S+ and got [1-9]\d* articles)\.$`)
	if err != nil {
		return "", err
	}
	return told[1], nil
}

func (n *newcomer) seeConnection(ctx context.Context) (string, error) {
	if err := n.phone.visits(ctx, n.connections); err != nil {
		return "", err
	}
	if err := n.phone.pastes(ctx, n.token); err != nil {
		return "", err
	}
	if err := n.phone.taps(ctx, "Show connections"); err != nil {
		return "", err
	}
	return "one app is connected", n.phone.sees(ctx, "4-connections", "Pasteport demo client", "End this connection")
}

func (n *newcomer) endConnection(ctx context.Context) (string, error) {
	for _, words := range []string{"End this connection", "End it"} {
		if err := n.phone.taps(ctx, words); err != nil {
			return "", err
		}
	}
	return "it has ended, and there is no other",
		n.phone.sees(ctx, "5-ended", "The connection has ended.", "No app is connected with this token now.")
}

func (n *newcomer) callInVain(ctx context.Context) (string, error) {
	if err := n.first.presses(ctx, "Enter"); err != nil {
		return "", err
	}
	told, err := n.first.sees(ctx, `^(Refused: .*401.*|Answered: .*)$`)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(told[1], "Answered") {
		return "", fmt.Errorf("the client may still call after its connection was ended:\n%s", told[1])
	}
	_, err = n.first.sees(ctx, `^Your turn\.`)
	return told[1], err
}
