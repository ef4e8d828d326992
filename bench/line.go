package main

import "strings"

// line is one measurement on several servers.
type line struct {
	name     string
	scenario string
	rate     float64 // operations per second of an open loop; 0 for a closed loop
	usesUp   bool    // ends when the clients have used up their tokens
	servers  []string
	compare  []comparison
	short    bool // part of --short
	once     bool // one round is enough

	measure func(b *bench, l line, servers []string) (map[string]sample, error) // one round; nil: underLoad
}

// comparison is one row of the results: ours divided by a peer's, or ours alone.
type comparison struct {
	metric      metric
	ours, peer  string
	floor, goal float64
	above       bool // compares by difference, not by ratio
	reach       bool // shows a limit; neither server is ours
	disk        bool // depends on the disk, so --check ignores it
}

// clients is the number of concurrent clients.
const clients = 64

func (l line) file() string { return strings.NewReplacer(" ", "-", "/", "-").Replace(l.name) }

// moreIsBetter reports whether a higher value is better, which holds for rates only.
func (c comparison) moreIsBetter() bool { return c.metric == rate }

// name describes the comparison; figures.json uses it as a key.
func (c comparison) name() string {
	switch {
	case c.peer == "":
		return c.ours + ", " + string(c.metric)
	case c.above:
		return c.ours + " − " + c.peer + ", " + string(c.metric)
	}
	return c.ours + " ÷ " + c.peer + ", " + string(c.metric)
}

// of returns the value of the comparison in one round.
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

// meets reports whether a value is at least as good as a bar.
func (c comparison) meets(value, bar float64) bool {
	if c.moreIsBetter() {
		return value >= bar
	}
	return value <= bar
}

// against compares ours with each peer in one metric.
func against(m metric, ours string, peers ...bar) (comparisons []comparison) {
	for _, p := range peers {
		comparisons = append(comparisons, comparison{
			metric: m,
			ours:   ours,
			peer:   p.peer,
			floor:  p.floor,
			goal:   p.goal,
		})
	}
	return comparisons
}

// reach compares two other servers to show the best possible result of ours; --check ignores it.
func reach(m metric, server, peer string) []comparison {
	return []comparison{{
		metric: m,
		ours:   server,
		peer:   peer,
		reach:  true,
	}}
}

// reachAlone is the absolute value of another server that shows the best possible result of ours.
func reachAlone(m metric, server string) []comparison {
	return []comparison{{metric: m, ours: server, reach: true}}
}

// byDisk marks comparisons whose result depends on the disk.
func byDisk(comparisons []comparison) []comparison {
	for i := range comparisons {
		comparisons[i].disk = true
	}
	return comparisons
}

// over is reach by difference.
func over(m metric, server, peer string) []comparison {
	return []comparison{{
		metric: m,
		ours:   server,
		peer:   peer,
		reach:  true,
		above:  true,
	}}
}

// above is against by difference.
func above(m metric, ours string, peers ...bar) []comparison {
	comparisons := against(m, ours, peers...)
	for i := range comparisons {
		comparisons[i].above = true
	}
	return comparisons
}

// alone is an absolute value.
func alone(m metric, ours string, floor, goal float64) []comparison {
	return []comparison{{
		metric: m,
		ours:   ours,
		floor:  floor,
		goal:   goal,
	}}
}

// bar is the required value (floor) and the target (goal) against a peer; 0 means none.
type bar struct {
	peer        string
	floor, goal float64
}
