package doctor

import (
	"slices"
	"strings"
)

// allWellKnown is the value of --clients without one.
const allWellKnown = "well-known"

// areDocuments reports whether --clients is absent, without a value, or a list of client_ids.
func areDocuments(clients string) bool {
	if clients == "" || clients == allWellKnown {
		return true
	}
	return !slices.ContainsFunc(strings.Split(clients, ","), func(document string) bool {
		return !strings.HasPrefix(document, "https://")
	})
}

// knownClients returns the well-known clients, or those at the given client_ids.
func (o doctorOptions) knownClients() (clients []KnownClient) {
	if o.clients != "" && o.clients != allWellKnown {
		for document := range strings.SplitSeq(o.clients, ",") {
			clients = append(clients, KnownClient{Name: document, Document: document})
		}
		return clients
	}
	for _, client := range wellKnownClients {
		clients = append(clients,
			KnownClient{Name: client.name, Document: client.document, RunsAtMaker: client.runsAtMaker})
	}
	return append(clients, registeringClients...)
}

// next recommends what to do after reading the report.
func next(d Diagnosis) string {
	if worst := d.First(d.Result); worst.Mend != "" {
		return "mend " + worst.ID + ", then run doctor again: " + worst.Mend
	}
	groups := clientsOf(d)
	can, cannot := "clients", ""
	if len(groups) > 0 {
		can = "no client of those that were checked"
	}
	for _, group := range groups {
		switch {
		case group.Answer == Can:
			can = some(group.Names)
		case group.Remedy != "":
			cannot += "; " + some(group.Names) + " cannot, " + group.Reason + ": " + group.Remedy
		}
	}
	if skipped := d.First(Skipped); skipped.ID != "" && skipped.ID != UpstreamID {
		return can + " should be able to log in" + cannot + "; the rest was skipped " + skipped.Seen + unchecked(d)
	}
	if cannot == "" {
		can = "nothing to do: " + can
	}
	return can + " can connect to " + d.URL + cannot
}

// unchecked says that a gateway was not asked about its upstreams.
func unchecked(d Diagnosis) string {
	if d.Checks[len(d.Checks)-1].ID != UpstreamID { // the check of an upstream has its path, too
		return ""
	}
	return "; if this is a gateway, the MCP server behind it was not checked"
}

func clientsOf(d Diagnosis) []ClientGroup {
	for _, found := range d.Checks {
		if len(found.Clients) > 0 {
			return found.Clients
		}
	}
	return nil
}

const fewNames = 3 // in the last line of the report; the check clients.login lists all

func some(names []string) string {
	if len(names) <= fewNames {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:fewNames], ", ") + " and others"
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}
