package remote

import (
	"cmp"
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/messages"
	"google.golang.org/protobuf/proto"
)

// A client has limits: for each request, and for all of its open requests.

// nodesOf returns how many nodes a request needs: one for each permit, and one in the request queue of
// each semaphore.
func nodesOf(r *manager.Recipe, msg *messages.Acquire) (n int) {
	if r.MemberKinds == nil {
		return len(r.Directories)/2 + int(max(msg.Permits, 1))
	}
	for _, member := range r.Deps {
		n += len(member.Recipe.Directories)/2 + 1
	}
	return n
}

// overLimit returns the limit that the client exceeds by a request of so many nodes, with so many bytes of
// data in each, and a text about it. It returns "" if the request exceeds none.
func (c *servedClient) overLimit(nodes, data int) (Limit, string) {
	if n := c.nodes + nodes; n > c.server.cfg.MaxRequestsPerClient {
		return LimitRequests, fmt.Sprintf("the open requests need %d nodes with this one: the lock server takes %d at most of one client", n, c.server.cfg.MaxRequestsPerClient)
	}
	if n := c.data + nodes*data; n > c.server.cfg.MaxDataPerClient {
		return LimitData, fmt.Sprintf("the open requests have %d bytes of data with this one: the lock server takes %d at most of one client", n, c.server.cfg.MaxDataPerClient)
	}
	return "", ""
}

// count counts what a request costs, once more or once less.
func (c *servedClient) count(r *servedRequest, times int) {
	c.nodes += times * r.nodes
	c.data += times * r.nodes * len(r.acquire.Data)
}

// Limits of what a client asks for: ZooKeeper ends the connection of the server at a larger request,
// and errors and lines of the log name a lock.
const (
	maxData = 512 << 10
	maxLock = 16 << 10
)

// problemOf returns what no client may ask for, or "".
func problemOf(m *messages.AcquireLock) string {
	if m.GetAcquire() == nil {
		return "the acquire is missing: it must be given"
	}
	return cmp.Or(problemOfLock(m.Path, m.Lock), problemOfData(m.Acquire.Data), problemOfPermits(m.Path, m.Acquire.Permits))
}

func problemOfLock(path string, lock *messages.LockSpec) string {
	return tooLarge("lock", len(path)+proto.Size(lock), maxLock)
}

func problemOfData(data []byte) string { return tooLarge("data", len(data), maxData) }

// maxPart bounds the bytes that a Granted has for a permit, without the path.
const maxPart = 160

// problemOfPermits returns why no frame carries a grant of so many permits, or "".
func problemOfPermits(path string, permits uint32) string {
	most := uint32(maxMessage * 3 / 4 / (len(path) + maxPart))
	if permits <= most {
		return ""
	}
	return fmt.Sprintf("the request wants %d permits: a lock server grants %d of this lock at most by one request", permits, most)
}

func tooLarge(what string, size, most int) string {
	if size <= most {
		return ""
	}
	return fmt.Sprintf("the %s has %d bytes: a lock server takes %d at most", what, size, most)
}
