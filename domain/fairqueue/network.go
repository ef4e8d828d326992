package fairqueue

import "container/list"

// waiter is a claim that waits in a leaf.
type waiter struct {
	shares  []Share
	leaf    *network // nil once settled
	element *list.Element
	settled chan struct{}
	err     error // set before settled is closed
}

// settle takes the waiter out of its leaf and lets it continue.
func (w *waiter) settle(err error) {
	w.leaf.remove(w)
	w.err = err
	close(w.settled)
}

// network is a node of the tree of waiters. A leaf has waiters, the oldest first; every other node has networks, the one whose turn is next
// first. A network without waiters is not in the tree.
type network struct {
	parent  *network
	name    string
	size    int // waiters in it and in its inner networks
	inner   map[string]*list.Element
	turns   *list.List // of *network
	waiters *list.List // of *waiter
}

func newNetwork(parent *network, name string) *network {
	return &network{parent: parent, name: name, inner: map[string]*list.Element{}, turns: list.New(), waiters: list.New()}
}

func (n *network) len() int {
	if n == nil {
		return 0
	}
	return n.size
}

func (n *network) child(name string) *network {
	element, ok := n.inner[name]
	if !ok {
		return nil
	}
	return element.Value.(*network)
}

// at returns the network at the end of a path, nil when nothing waits there.
func (n *network) at(path []string) *network {
	for _, name := range path {
		if n = n.child(name); n == nil {
			return nil
		}
	}
	return n
}

func (n *network) add(path []string, w *waiter) {
	n.size++
	for _, name := range path {
		next := n.child(name)
		if next == nil {
			next = newNetwork(n, name)
			n.inner[name] = n.turns.PushBack(next)
		}
		n = next
		n.size++
	}
	w.leaf, w.element = n, n.waiters.PushBack(w)
}

func (n *network) remove(w *waiter) {
	n.waiters.Remove(w.element)
	w.leaf, w.element = nil, nil
	for ; n != nil; n = n.parent {
		if n.size--; n.size == 0 && n.parent != nil {
			n.parent.turns.Remove(n.parent.inner[n.name])
			delete(n.parent.inner, n.name)
		}
	}
}

// next returns the waiter whose turn it is among those that are admitted, and moves the networks around it to the end of their turns.
func (n *network) next(admits func([]Share) bool) *waiter {
	for e := n.waiters.Front(); e != nil; e = e.Next() {
		if w := e.Value.(*waiter); admits(w.shares) {
			return w
		}
	}
	for e := n.turns.Front(); e != nil; e = e.Next() {
		if w := e.Value.(*network).next(admits); w != nil {
			n.turns.MoveToBack(e)
			return w
		}
	}
	return nil
}

// makeRoom drops the newest waiter of the inner network with most waiters. It reports false when that is the newcomer's, or the newcomer's
// would then have as many.
func (n *network) makeRoom(newcomer []string) bool {
	w := n.newestOfLargest(newcomer)
	if w == nil {
		return false
	}
	w.settle(ErrFull)
	return true
}

// newestOfLargest descends to the largest network on each level and returns the newest waiter of the leaf. On a level where no network has at
// least two more waiters than the newcomer's own, it descends to the own one; it returns nil for the newcomer's own leaf.
func (n *network) newestOfLargest(newcomer []string) *waiter {
	outside := false
	for n.turns.Len() > 0 {
		var own *network
		if !outside && len(newcomer) > 0 {
			own, newcomer = n.child(newcomer[0]), newcomer[1:]
		}
		largest := n.largest()
		if !outside && largest.size < own.len()+2 {
			largest = own
		}
		if largest == nil {
			return nil
		}
		outside = outside || largest != own
		n = largest
	}
	if !outside {
		return nil
	}
	return n.waiters.Back().Value.(*waiter)
}

func (n *network) largest() *network {
	var largest *network
	for e := n.turns.Front(); e != nil; e = e.Next() {
		if inner := e.Value.(*network); inner.size > largest.len() {
			largest = inner
		}
	}
	return largest
}
