package main

import (
	"context"
	"strings"
)

// whole are the lines that the trace must show for the newcomer's connection, in this order.
var whole = []string{
	`^  1 .+ authorization request +ok$`,
	`client metadata +ok$`,
	`consent page +ok$`, `token judged +refused \[B8\]$`, `token judged +ok$`, `code issued +ok$`,
	`code exchanged +ok$`, `MCP call +ok$`,
	`ended +ok\n +ended_by_person$`, `MCP call +refused \[G7\]\n.+ended_by_person$`,
	`^The connection has ended: the person ended it .+$`,
}

func (n *newcomer) listConnections(ctx context.Context) (_ string, err error) {
	if n.second, err = n.terminal.open(ctx, "trace", n.home); err != nil {
		return "", err
	}
	told, err := n.second.asks(ctx, n.listing, `^([0-9a-f]{8}) .+ ended .+the person ended it `)
	if err != nil {
		return "", err
	}
	n.id = told[1]
	return n.id + " was ended by the person", nil
}

func (n *newcomer) trace(ctx context.Context) (string, error) {
	_, err := n.second.asks(ctx, strings.Replace(n.tracing, " trace ", " trace "+n.id+" ", 1), whole...)
	return "from the authorization request to the refused call", err
}

func (n *newcomer) stopDemo(ctx context.Context) (string, error) {
	if err := n.first.presses(ctx, "C-c"); err != nil {
		return "", err
	}
	_, err := n.first.ends(ctx)
	return "the demo has stopped", err
}
