package admin

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Slot counts the calls that ended in a part of the last day.
type Slot struct {
	Begin    time.Time
	Answered int
	Refused  int
	Failed   int
}

func (s Slot) calls() int { return s.Answered + s.Refused + s.Failed }

// Activity is the last day of an MCP server, the oldest slot first.
type Activity struct {
	Name, Resource string
	Slots          []Slot
}

// busiest returns the slot with the most calls.
func (a Activity) busiest() Slot {
	return slices.MaxFunc(a.Slots, func(a, b Slot) int { return cmp.Compare(a.calls(), b.calls()) })
}

// sentence says in words what the plot shows.
func (a Activity) sentence() string {
	var sum Slot
	for _, slot := range a.Slots {
		sum.Answered += slot.Answered
		sum.Refused += slot.Refused
		sum.Failed += slot.Failed
	}
	if sum.calls() == 0 {
		return "No calls."
	}
	busiest := a.busiest()
	return fmt.Sprintf("Calls: %d answered, %d refused, %d failed. Most in a quarter of an hour: %d, from %s UTC.",
		sum.Answered, sum.Refused, sum.Failed, busiest.calls(), busiest.Begin.UTC().Format("15:04"))
}

// height returns the height of a bar, of 100 for the busiest slot.
func (a Activity) height(calls int) string {
	return fmt.Sprintf("%.1f", 100*float64(calls)/float64(max(1, a.busiest().calls())))
}
