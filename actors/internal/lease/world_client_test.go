package lease

import "time"

// leaseClient is a client: one lease at a time, and one lock.
type leaseClient struct {
	proc
	lease *ClientEnd // nil: none
	numberedEnd
	stream   *duplex
	welcomed bool // on this stream
	id       int  // of the lease; 0: none
	letGo    int  // the lease that has lapsed; 0: none
	wants    int  // node that it has asked for
	holds    int  // node that it was granted
	away     bool // it was told to go away
	done     bool // it asks for no more

	// What kind of client it is:
	stubborn bool // it does not go away when it is told to
	forEver  bool // it never releases by itself
	renewsOn bool // it renews on after a lapse, until it hears from the server

	renewsOld *ClientEnd    // its lapsed lease, while it renews that
	extended  time.Duration // end of the belief that a grant has extended
}

func newLeaseClient(w *world) *leaseClient {
	c := &leaseClient{}
	c.proc = w.newProc(c.checkClock)
	c.life = 1
	c.stubborn, c.renewsOn = w.chance(0.2), w.chance(0.2)
	c.dial()
	c.every(w.renew, c.renew)
	c.every(100*time.Millisecond, c.ask)
	return c
}

// believes reports whether the client believes that it holds the lock. It changes nothing.
func (c *leaseClient) believes() bool {
	if c.dead || c.holds == 0 || c.lease == nil {
		return false
	}
	end := *c.lease
	return end.Believes(c.clock()) || c.clock() < c.extended
}

func (c *leaseClient) checkClock() {
	if c.lease != nil && c.lease.Lapsed(c.clock()) && c.clock() >= c.extended {
		c.w.log("client: lease %d has lapsed", c.id)
		c.w.lapses++
		c.lapse()
	}
	c.w.checkExclusion()
}

// lapse lets go of the lease.
func (c *leaseClient) lapse() {
	old := c.lease
	if c.w.weak.resumesLapsed {
		c.lease, c.holds, c.wants = &ClientEnd{number: old.number, got: old.number}, 0, 0
		c.dial()
		return
	}
	c.letGo = c.id
	c.forget()
	if c.renewsOn && c.stream != nil && c.welcomed {
		c.renewsOld = old
		return
	}
	c.dial()
}

// forget drops the lease with all that is held by it.
func (c *leaseClient) forget() {
	c.lease, c.numberedEnd, c.id, c.holds, c.wants, c.extended = nil, numberedEnd{}, 0, 0, 0, 0
}

func (c *leaseClient) dial() {
	if c.stream != nil {
		c.stream.breakUp("the client dials")
	}
	d := &duplex{w: c.w, open: true}
	c.stream, c.welcomed, c.renewsOld = d, false, nil
	id, letGo := c.id, c.letGo
	d.begin(func(s *leaseServer) { s.hello(d, id, letGo) })
	c.after(2*time.Second, func() {
		if c.stream == d && !c.welcomed {
			c.dial()
		}
	})
}

func (c *leaseClient) closed(d *duplex) {
	if c.stream == d {
		c.stream = nil
		c.after(200*time.Millisecond, func() {
			if c.stream == nil {
				c.dial()
			}
		})
	}
}

// send sends a message if there is a stream with a lease.
func (c *leaseClient) send(do func(s *leaseServer)) {
	if c.stream != nil && c.welcomed {
		c.stream.toServer(do)
	}
}

func (c *leaseClient) sendNumbered(k kind, node int) { c.transmit(c.next(k, node)) }

func (c *leaseClient) transmit(m numbered) {
	id, received := c.id, c.received
	c.send(func(s *leaseServer) { s.receive(id, received, m) })
}

func (c *leaseClient) welcome(id int, resumed bool) {
	c.welcomed, c.letGo = true, 0
	if !resumed {
		c.forget()
		c.id, c.lease, c.away = id, &ClientEnd{}, false
	}
	for _, m := range c.sent {
		c.transmit(m)
	}
	c.renew()
}

func (c *leaseClient) renew() {
	if old, id := c.renewsOld, c.letGo; old != nil {
		old.number++
		c.send(func(s *leaseServer) { s.renew(id, old.number, old.got) })
		return
	}
	if c.lease == nil || !c.welcomed || c.stream == nil {
		return
	}
	id := c.id
	number, got := c.lease.Renew(c.clock())
	c.mayFreeze()
	c.do(func() { c.send(func(s *leaseServer) { s.renew(id, number, got) }) })
}

func (c *leaseClient) renewed(id int, number uint64, v time.Duration) {
	if c.id != id {
		return
	}
	c.lease.Renewed(c.clock(), number, v)
	c.w.log("client: renewal %d is answered, believes until %.3f", number, float64(c.lease.Until())/c.rate/1e9)
	c.w.checkExclusion()
}

func (c *leaseClient) receive(id int, received uint64, m numbered) {
	if c.id != id {
		return
	}
	c.acknowledge(received)
	switch {
	case !c.accept(m):
	case m.kind == granted && c.wants == m.node:
		c.granted(m.node)
	case m.kind == granted:
		c.sendNumbered(release, m.node)
	}
}

func (c *leaseClient) granted(node int) {
	c.w.log("client: holds node %d", node)
	c.w.grants++
	c.holds, c.wants = node, 0
	if c.w.weak.grantExtends {
		c.extended = c.clock() + 2*c.w.timeout/3 - c.w.margin
	}
	c.w.checkExclusion()
	c.after(c.w.seconds(0.5, 40), func() {
		if c.holds == node && !c.forEver {
			c.release()
		}
	})
}

func (c *leaseClient) release() {
	if c.holds != 0 {
		c.w.log("client: releases node %d", c.holds)
		c.sendNumbered(release, c.holds)
		c.holds = 0
	}
}

func (c *leaseClient) goAway() {
	c.away = true
	if !c.stubborn {
		c.after(c.w.seconds(0, 4), c.release)
	}
}

// ended handles the server's word that the lease is over.
func (c *leaseClient) ended(id int) {
	if c.id == id {
		c.forget()
		c.dial()
	}
}

// ask asks for the lock if the client does not have it.
func (c *leaseClient) ask() {
	if c.lease != nil && c.welcomed && c.holds == 0 && c.wants == 0 && !c.away && !c.done {
		c.wants = c.w.nextID()
		c.sendNumbered(acquire, c.wants)
	}
}
