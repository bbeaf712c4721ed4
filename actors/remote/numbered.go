package remote

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
)

// outbox holds the numbered messages of one direction of a lease that the other end has not
// confirmed. They are sent again on the next stream.
type outbox[M proto.Message] struct {
	unconfirmed []M
	sizes       []int  // of unconfirmed, in bytes
	bytes       int    // their sum
	first       uint64 // number of the first of unconfirmed; 0 means 1
	sent        int    // how many of unconfirmed the present stream has
	frameBytes  int    // of the messages that next has put into the last frame
}

// The limits of one frame, in messages and in bytes. A message that is larger goes alone.
const (
	maxFrameMessages = 256
	maxFrameBytes    = 256 << 10
)

func (o *outbox[M]) add(m M) {
	size := proto.Size(m)
	o.unconfirmed, o.sizes = append(o.unconfirmed, m), append(o.sizes, size)
	o.bytes += size
}

// next puts messages that the present stream does not have yet into a frame, and returns the number
// of its first. The messages that the frame has already are those of the last next.
func (o *outbox[M]) next(frame []M) (first uint64, messages []M) {
	first = o.number() + uint64(o.sent-len(frame))
	if len(frame) == 0 {
		o.frameBytes = 0
		frame = make([]M, 0, min(len(o.unconfirmed)-o.sent, maxFrameMessages))
	}
	for o.sent < len(o.unconfirmed) && len(frame) < maxFrameMessages {
		bytes := o.frameBytes + o.sizes[o.sent]
		if len(frame) > 0 && bytes > maxFrameBytes {
			break
		}
		frame = append(frame, o.unconfirmed[o.sent])
		o.frameBytes = bytes
		o.sent++
	}
	return first, frame
}

func (o *outbox[M]) number() uint64 { return max(o.first, 1) }

// confirm drops the messages up to a number. The error is that they were never sent.
func (o *outbox[M]) confirm(received uint64) error {
	if received < o.number() {
		return nil
	}
	n := received - o.number() + 1
	if n > uint64(o.sent) {
		return fmt.Errorf("message %d is confirmed, and %d is the last that was sent", received, o.number()+uint64(o.sent)-1)
	}
	for _, size := range o.sizes[:n] {
		o.bytes -= size
	}
	o.unconfirmed, o.sizes = slices.Delete(o.unconfirmed, 0, int(n)), slices.Delete(o.sizes, 0, int(n))
	o.first, o.sent = received+1, o.sent-int(n)
	return nil
}

// restart begins a stream, which has nothing yet.
func (o *outbox[M]) restart() { o.sent = 0 }

// arrivals counts the numbered messages that have come by a lease.
type arrivals struct{ received uint64 }

// accept returns how many of n messages have come before. The error is that one is missing.
func (i *arrivals) accept(first uint64, n int) (seen int, err error) {
	if n == 0 {
		return 0, nil
	}
	if first == 0 || first > i.received+1 {
		return 0, fmt.Errorf("message %d comes after message %d", first, i.received)
	}
	seen = int(min(i.received+1-first, uint64(n)))
	i.received = max(i.received, first+uint64(n)-1)
	return seen, nil
}
