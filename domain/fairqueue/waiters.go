package fairqueue

import "container/list"

// waiter is a claim that is waiting in a leaf of the tree of networks.
type waiter struct {
	quotas  []Quota
	leaf    *network // nil when finished
	element *list.Element
	done    chan struct{}
	err     error // nil when the waiter got a slot; set before done is closed
}

// finish removes the waiter from its leaf and wakes it.
func (w *waiter) finish(err error) {
	w.leaf.remove(w)
	w.err = err
	close(w.done)
}

// network is a node of the tree of networks. A leaf is a user and has waiters, the oldest first.
// Every other node has children, the one with the next turn first. Nodes without waiters are
// removed.
type network struct {
	parent   *network
	name     string
	size     int                      // number of waiters in the subtree
	children map[string]*list.Element // by name, elements of order
	order    *list.List               // of *network, the next turn first
	waiters  *list.List               // of *waiter
}

func newNetwork(parent *network, name string) *network {
	return &network{
		parent:   parent,
		name:     name,
		children: map[string]*list.Element{},
		order:    list.New(),
		waiters:  list.New(),
	}
}

func (n *network) len() int {
	if n == nil {
		return 0
	}
	return n.size
}

func (n *network) child(name string) *network {
	element, ok := n.children[name]
	if !ok {
		return nil
	}
	return element.Value.(*network)
}

// at returns the network at the end of a path, nil when it has no waiters.
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
			n.children[name] = n.order.PushBack(next)
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
			n.parent.order.Remove(n.parent.children[n.name])
			delete(n.parent.children, n.name)
		}
	}
}

// next returns the first waiter in turn that is admitted, and moves each network on the path to it
// to the end of its order.
func (n *network) next(admits func([]Quota) bool) *waiter {
	for e := n.waiters.Front(); e != nil; e = e.Next() {
		if w := e.Value.(*waiter); admits(w.quotas) {
			return w
		}
	}
	for e := n.order.Front(); e != nil; e = e.Next() {
		if w := e.Value.(*network).next(admits); w != nil {
			n.order.MoveToBack(e)
			return w
		}
	}
	return nil
}

// evict makes room for a newcomer by removing the newest waiter of the network with the most
// waiters. It returns false if that is the newcomer's network, or if the newcomer's network would
// then have as many.
func (n *network) evict(newcomer []string) bool {
	w := n.evictable(newcomer)
	if w == nil {
		return false
	}
	w.finish(ErrFull)
	return true
}

// evictable descends to the largest network on each level and returns the newest waiter of the
// leaf. On a level where no network has at least two more waiters than that of the newcomer, it
// descends into the newcomer's. It returns nil when it arrives at the newcomer's leaf.
func (n *network) evictable(newcomer []string) *waiter {
	outside := false
	for n.order.Len() > 0 {
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
	for e := n.order.Front(); e != nil; e = e.Next() {
		if inner := e.Value.(*network); inner.size > largest.len() {
			largest = inner
		}
	}
	return largest
}
