package manager

import "sync/atomic"

// Counters say what became of the requests of owners, of all locks of a manager. The requests of
// one lock's actor to another are not counted.
type Counters struct {
	// Requested is how many requests came to a lock, Acquired how many grants there were, and
	// Released how many of these their owners have given back.
	Requested, Acquired, Released uint64
	// Lost is how many grants ended otherwise, and Refused how many requests were never granted, by
	// reason.
	Lost, Refused [ReasonCount]uint64
	// Held is how many grants hold, or are released without ZooKeeper's answer yet, and Waiting how many
	// requests wait.
	Held, Waiting int
	// LocalHandOffs is how often the departure of a contender of this process led to a grant.
	// RemoteHandOffs is how often the departure of another process's node led to one.
	LocalHandOffs, RemoteHandOffs uint64
}

// ReasonCount is above the numbers of all reasons.
const ReasonCount = 32

// Tally counts for the Counters, of some of the locks. Their actors add to the fields, which mean
// what those of Counters mean.
type Tally struct {
	Requested, Acquired, Released, LocalHandOffs, RemoteHandOffs atomic.Uint64
	Lost, Refused                                                [ReasonCount]atomic.Uint64

	_ [cacheLine]byte // between this tally and the next
}

const (
	// tallyCount is how many tallies the locks of a manager share. With one, to which all
	// processors would write, 256 local queues make a fifth less acquires on two processors.
	tallyCount = 16
	cacheLine  = 64
)

// Counters returns the present counts. A request that ends meanwhile may still count as held or
// waiting.
func (m *Manager) Counters() (c Counters) {
	var lost, refused uint64
	for i := range m.tallies {
		t := &m.tallies[i]
		// The end of a request is read before its beginning, so that no sum is less than its parts.
		for reason := range ReasonCount {
			l, r := t.Lost[reason].Load(), t.Refused[reason].Load()
			c.Lost[reason] += l
			c.Refused[reason] += r
			lost, refused = lost+l, refused+r
		}
		c.Released += t.Released.Load()
		c.Acquired += t.Acquired.Load()
		c.Requested += t.Requested.Load()
		c.LocalHandOffs += t.LocalHandOffs.Load()
		c.RemoteHandOffs += t.RemoteHandOffs.Load()
	}
	c.Held, c.Waiting = int(c.Acquired-c.Released-lost), int(c.Requested-c.Acquired-refused)
	return c
}
