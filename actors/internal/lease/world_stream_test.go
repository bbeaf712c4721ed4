package lease

// duplex is a stream between client and server. What is under way when it breaks is lost, and the
// ends notice that some time later.
type duplex struct {
	w    *world
	open bool
}

func (d *duplex) toClient(do func(c *leaseClient)) {
	d.w.toClient.send(func() {
		if c := d.w.client; d.open {
			c.do(func() {
				switch {
				case c.stream != d:
				case c.renewsOld != nil:
					c.dial()
				default:
					do(c)
				}
			})
		}
	})
}

func (d *duplex) toServer(do func(s *leaseServer)) {
	d.begin(func(s *leaseServer) {
		if s.stream == d {
			do(s)
		}
	})
}

// begin sends the first message to the server.
func (d *duplex) begin(do func(s *leaseServer)) {
	d.w.toServer.send(func() {
		if s := d.w.server; d.open {
			s.do(func() { do(s) })
		}
	})
}

func (d *duplex) breakUp(why string) {
	if !d.open {
		return
	}
	d.open = false
	w := d.w
	w.log("the stream breaks: %s", why)
	w.in(w.seconds(0, 1), func() { w.server.do(func() { w.server.closed(d) }) })
	w.in(w.seconds(0, 1), func() { w.client.do(func() { w.client.closed(d) }) })
}

// numbered is a message of which an end of a lease makes sure that it arrives once, in order.
type numbered struct {
	number uint64
	kind   kind
	node   int
}

type kind int

const (
	acquire kind = iota
	release
	granted
)

// numberedEnd is what one end knows of the numbered messages of a lease.
type numberedEnd struct {
	sent             []numbered // that are not acknowledged
	number, received uint64
}

func (e *numberedEnd) next(k kind, node int) numbered {
	e.number++
	m := numbered{e.number, k, node}
	e.sent = append(e.sent, m)
	return m
}

// accept reports whether a message is the next.
func (e *numberedEnd) accept(m numbered) bool {
	if m.number != e.received+1 {
		return false
	}
	e.received++
	return true
}

func (e *numberedEnd) acknowledge(received uint64) {
	for len(e.sent) > 0 && e.sent[0].number <= received {
		e.sent = e.sent[1:]
	}
}
