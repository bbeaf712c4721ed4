package remote

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
)

// numbered has the numbered messages of a lease, as one of its ends sees them: those that it sends, Out,
// until the other end has confirmed them, and the number of those that have come. It does no I/O. The
// zero value begins a lease.
//
// A frame of the other end is checked as a whole before any of it counts: a message that counted as
// delivered, and was dropped because of what else its frame had, would never be sent again.
type numbered[Out proto.Message] struct {
	pending   []Out  // the messages behind confirmed, in order
	sizes     []int  // of pending, in bytes
	bytes     int    // their sum
	confirmed uint64 // the last message that the other end has confirmed
	sent      uint64 // the last one that the present stream has, confirmed at least
	newest    uint64 // the last one that any stream had: the other end may confirm it on a later stream
	delivered uint64 // the last message of the other end that has come

	frameBytes int // of the messages in the frame of the last nextFrame
}

// add queues a message for the other end. The error is that the message cannot be sent, as with a text
// that is not UTF-8. Then nothing has changed: in a frame it would break each stream of the lease.
func (n *numbered[Out]) add(m Out) error {
	size, err := sizeOf(m)
	if err != nil {
		return err
	}
	n.pending, n.sizes = append(n.pending, m), append(n.sizes, size)
	n.bytes += size
	return nil
}

// last returns the number of the last message that was added.
func (n *numbered[Out]) last() uint64 { return n.confirmed + uint64(len(n.pending)) }

// unsent reports whether the present stream does not have all messages yet.
func (n *numbered[Out]) unsent() bool { return n.sent < n.last() }

// nextFrame returns messages that the present stream does not have yet, and the number of the first.
func (n *numbered[Out]) nextFrame() (first uint64, messages []Out) {
	n.frameBytes, first = 0, n.sent+1
	left := int(n.last() - n.sent)
	return first, n.extend(first, make([]Out, 0, min(left, maxFrameMessages)))
}

// extend puts further messages into the frame of the last nextFrame, if they are the next ones for it:
// the other end may have confirmed messages between, by what a former stream has brought it.
func (n *numbered[Out]) extend(first uint64, messages []Out) []Out {
	if first+uint64(len(messages)) != n.sent+1 {
		return messages
	}
	for n.unsent() && len(messages) < maxFrameMessages {
		at := n.sent - n.confirmed
		if len(messages) > 0 && n.frameBytes+n.sizes[at] > maxFrameBytes {
			break
		}
		messages = append(messages, n.pending[at])
		n.frameBytes += n.sizes[at]
		n.sent++
	}
	n.newest = max(n.newest, n.sent)
	return messages
}

// accept handles the numbers of a frame of the other end: the last message that it has confirmed, and
// the number of the first of its count messages. It returns how many of these have come before. The
// error is that no honest end sends such numbers. Then nothing has changed.
func (n *numbered[Out]) accept(received, first uint64, count int) (seen int, err error) {
	switch {
	case received > n.newest:
		return 0, fmt.Errorf("message %d is confirmed, and %d is the last that was sent", received, n.newest)
	case count > 0 && (first == 0 || first > n.delivered+1):
		return 0, fmt.Errorf("message %d comes after message %d", first, n.delivered)
	case first+uint64(count) < first:
		return 0, fmt.Errorf("%d messages begin with number %d: there is none so high", count, first)
	}
	n.confirm(received)
	if count == 0 {
		return 0, nil
	}
	seen = int(min(n.delivered+1-first, uint64(count)))
	n.delivered = max(n.delivered, first+uint64(count)-1)
	return seen, nil
}

// confirm drops the messages up to a number.
func (n *numbered[Out]) confirm(received uint64) {
	if received <= n.confirmed {
		return
	}
	count := int(received - n.confirmed)
	for _, size := range n.sizes[:count] {
		n.bytes -= size
	}
	n.pending, n.sizes = slices.Delete(n.pending, 0, count), slices.Delete(n.sizes, 0, count)
	n.confirmed, n.sent = received, max(n.sent, received)
}

// restart begins a stream, which has no message yet.
func (n *numbered[Out]) restart() { n.sent = n.confirmed }
