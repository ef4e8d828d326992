package telemetry

import (
	"net/http"
	"sync"
	"time"
)

const (
	slotLength = 15 * time.Minute
	daySlots   = int(24 * time.Hour / slotLength)
)

// Slot counts the calls that ended within a quarter of an hour.
type Slot struct {
	Begin    time.Time
	Answered int
	Refused  int // by a rule of this service, or with a status of 4xx
	Failed   int // with a status of 5xx
}

// day keeps the slots of the last day, by the template of the route.
type day struct {
	now    func() time.Time
	mu     sync.Mutex
	routes map[string]*[daySlots]Slot
}

// count counts a call with the rule that refused it, "" for none. Only a POST with a token is a
// call: a client without one only looks for the authorization server.
func (d *day) count(method, route string, status int, rule string) {
	isChallenge := status == http.StatusUnauthorized && rule == ""
	if method != http.MethodPost || isChallenge {
		return
	}
	begin := d.now().UTC().Truncate(slotLength)
	d.mu.Lock()
	defer d.mu.Unlock()
	slots := d.routes[route]
	if slots == nil {
		slots = new([daySlots]Slot)
		d.routes[route] = slots
	}
	slot := &slots[slotAt(begin)]
	if !slot.Begin.Equal(begin) {
		*slot = Slot{Begin: begin}
	}
	switch {
	case status >= http.StatusInternalServerError:
		slot.Failed++
	case rule != "" || status >= http.StatusBadRequest:
		slot.Refused++
	default:
		slot.Answered++
	}
}

// slotAt returns the index of a slot, which is the same a day later.
func slotAt(begin time.Time) int { return int(begin.Unix()/int64(slotLength/time.Second)) % daySlots }

// LastDay returns the calls to the routes together, the oldest slot first. The last slot is not
// over yet.
func (m *Metrics) LastDay(routes ...string) []Slot {
	d, slots := m.day, make([]Slot, daySlots)
	d.mu.Lock()
	defer d.mu.Unlock()
	latest := d.now().UTC().Truncate(slotLength)
	for i := range slots {
		sum := Slot{Begin: latest.Add(-time.Duration(daySlots-1-i) * slotLength)}
		for _, route := range routes {
			if kept := d.routes[route]; kept != nil && kept[slotAt(sum.Begin)].Begin.Equal(sum.Begin) {
				slot := kept[slotAt(sum.Begin)]
				sum.Answered += slot.Answered
				sum.Refused += slot.Refused
				sum.Failed += slot.Failed
			}
		}
		slots[i] = sum
	}
	return slots
}
