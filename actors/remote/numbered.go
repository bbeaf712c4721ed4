package remote

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// numbered has the numbered messages of a lease, as one of its ends sees them: those that it sends,
// until the other end has confirmed them, and the number of those that have come. It does no I/O. The
// zero value begins a lease.
//
// A frame of the other end is checked as a whole before any of it counts: a message that counted as
// delivered, and was dropped because of what else its frame had, would never be sent again.
type numbered struct {
	pending   [][]byte // the messages behind confirmed, in order, encoded
	bytes     int      // of pending
	confirmed uint64   // the last message that the other end has confirmed
	sent      uint64   // the last one that the present stream has, confirmed at least
	newest    uint64   // the last one that any stream had: the other end may confirm it on a later stream
	delivered uint64   // the last message of the other end that has come

	frame struct{ messages, bytes int } // of the last nextFrame
}

// The limits of one frame, in messages and in bytes. A message that is larger goes alone.
const (
	maxFrameMessages = 256
	maxFrameBytes    = 256 << 10
)

// maxNumbered bounds the bytes of a numbered message: a frame with it has room for what else it has.
const maxNumbered = maxMessage - 1<<10

// add queues a message for the other end. The error is that the message cannot be sent, as with a text
// that is not UTF-8. Then nothing has changed: in a frame it would break each stream of the lease.
func (n *numbered) add(m proto.Message) error {
	encoded, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	if len(encoded) > maxNumbered {
		return fmt.Errorf("a message of %d bytes cannot be sent: %d is the most", len(encoded), maxNumbered)
	}
	n.pending = append(n.pending, encoded)
	n.bytes += len(encoded)
	return nil
}

// last returns the number of the last message that was added.
func (n *numbered) last() uint64 { return n.confirmed + uint64(len(n.pending)) }

// unsent reports whether the present stream does not have all messages yet.
func (n *numbered) unsent() bool { return n.sent < n.last() }

// nextFrame puts messages that the present stream does not have yet into a frame, and returns the number
// of the first.
func (n *numbered) nextFrame(frame protoreflect.Message) (first uint64) {
	n.frame.messages, n.frame.bytes = 0, 0
	n.fill(frame)
	return n.sent + 1 - uint64(n.frame.messages)
}

// extend puts further messages into the frame of the last nextFrame, if they are the next ones for it,
// and reports whether it has: the other end may have confirmed messages between, by what a former stream
// has brought it.
func (n *numbered) extend(frame protoreflect.Message, first uint64) bool {
	had := n.frame.messages
	if first+uint64(had) == n.sent+1 {
		n.fill(frame)
	}
	return n.frame.messages > had
}

// fill puts messages into a frame until that is full. The frame has them as fields that its type does not
// know, which protobuf writes as they are. So each message is encoded once, whatever streams it goes by.
func (n *numbered) fill(frame protoreflect.Message) {
	field := frame.Descriptor().Fields().ByName("messages").Number()
	fields := frame.GetUnknown()
	for n.unsent() && n.frame.messages < maxFrameMessages {
		next := n.pending[n.sent-n.confirmed]
		if n.frame.messages > 0 && n.frame.bytes+len(next) > maxFrameBytes {
			break
		}
		fields = protowire.AppendTag(fields, field, protowire.BytesType)
		fields = protowire.AppendBytes(fields, next)
		n.frame.messages++
		n.frame.bytes += len(next)
		n.sent++
	}
	frame.SetUnknown(fields)
	n.newest = max(n.newest, n.sent)
}

// accept handles the numbers of a frame of the other end: the last message that it has confirmed, and
// the number of the first of its count messages. It returns how many of these have come before. The
// error is that no honest end sends such numbers. Then nothing has changed.
func (n *numbered) accept(received, first uint64, count int) (seen int, err error) {
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
func (n *numbered) confirm(received uint64) {
	if received <= n.confirmed {
		return
	}
	count := int(received - n.confirmed)
	for _, m := range n.pending[:count] {
		n.bytes -= len(m)
	}
	n.pending = slices.Delete(n.pending, 0, count)
	n.confirmed, n.sent = received, max(n.sent, received)
}

// restart begins a stream, which has no message yet.
func (n *numbered) restart() { n.sent = n.confirmed }
