package main

import "strings"

// line is one thing that is measured, on several servers in turn.
type line struct {
	name     string
	scenario string
	rate     float64 // of an open loop; 0 for a closed one
	usesUp   bool    // ends when the clients have nothing left
	servers  []string
	compare  []comparison
	short    bool // belongs to the short form
	once     bool // one round says it all

	measure func(b *bench, l line, servers []string) (map[string]sample, error) // one round; nil: underLoad
}

// comparison is one row of the results: ours divided by a peer's, or ours alone.
type comparison struct {
	metric      metric
	ours, peer  string
	floor, goal float64
	above       bool // ours less the peer's instead
	reach       bool // neither is ours
	disk        bool // it is the disk that decides how much it can be
}

// clients are how many send requests at once.
const clients = 64

func (l line) file() string { return strings.NewReplacer(" ", "-", "/", "-").Replace(l.name) }

// more is better of rates only.
func (c comparison) moreIsBetter() bool { return c.metric == rate }

// name says what is compared.
func (c comparison) name() string {
	switch {
	case c.peer == "":
		return c.ours + ", " + string(c.metric)
	case c.above:
		return c.ours + " − " + c.peer + ", " + string(c.metric)
	}
	return c.ours + " ÷ " + c.peer + ", " + string(c.metric)
}

// of is what one round says.
func (c comparison) of(round map[string]sample) float64 {
	ours, peers := round[c.ours][c.metric], round[c.peer][c.metric]
	switch {
	case c.peer == "":
		return ours
	case c.above:
		return ours - peers
	}
	return ours / peers
}

// meets tells whether a value is as good as a bar.
func (c comparison) meets(value, bar float64) bool {
	if c.moreIsBetter() {
		return value >= bar
	}
	return value <= bar
}

// against are the servers of a line, ours first, and how ours compares with each in one metric.
func against(m metric, ours string, peers ...bar) (comparisons []comparison) {
	for _, p := range peers {
		comparisons = append(comparisons, comparison{metric: m, ours: ours, peer: p.peer, floor: p.floor, goal: p.goal})
	}
	return comparisons
}

// reach shows how far ours could come; nobody is to blame when it falls.
func reach(m metric, server, peer string) []comparison {
	return []comparison{{metric: m, ours: server, peer: peer, reach: true}}
}

// reachAlone is a value that shows how far ours could come.
func reachAlone(m metric, server string) []comparison {
	return []comparison{{metric: m, ours: server, reach: true}}
}

// byDisk are comparisons that another disk changes.
func byDisk(comparisons []comparison) []comparison {
	for i := range comparisons {
		comparisons[i].disk = true
	}
	return comparisons
}

// over is reach, but by how much more it needs.
func over(m metric, server, peer string) []comparison {
	return []comparison{{metric: m, ours: server, peer: peer, reach: true, above: true}}
}

// above is against, but by how much more ours needs.
func above(m metric, ours string, peers ...bar) []comparison {
	comparisons := against(m, ours, peers...)
	for i := range comparisons {
		comparisons[i].above = true
	}
	return comparisons
}

// alone is a value that stands for itself.
func alone(m metric, ours string, floor, goal float64) []comparison {
	return []comparison{{metric: m, ours: ours, floor: floor, goal: goal}}
}

// bar is the least that counts as done against a peer, and what is aimed at; 0 where there is none.
type bar struct {
	peer        string
	floor, goal float64
}
