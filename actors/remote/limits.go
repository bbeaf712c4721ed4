package remote

import (
	"cmp"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/actorlock/actorlock/messages"
)

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
