package remote

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/messages"
)

// numberedEnd is an end of a lease in a history.
type numberedEnd struct {
	numbered
	added, arrived uint64
	flying         []*messages.ClientFrame // from this end, on the present stream
}

// message returns a message that has a number.
func message(n uint64) *messages.ClientMessage {
	return &messages.ClientMessage{What: &messages.ClientMessage_Withdraw{Withdraw: n}}
}

// next returns the next frame.
func (n *numbered) next() *messages.ClientFrame {
	f := &messages.ClientFrame{Received: n.delivered}
	f.First = n.nextFrame(f.ProtoReflect())
	return f
}

// asReceived returns a frame as the other end gets it.
func asReceived[F proto.Message](sent F) F {
	b, err := proto.Marshal(sent)
	received := sent.ProtoReflect().New().Interface().(F)
	if err = errors.Join(err, proto.Unmarshal(b, received)); err != nil {
		panic(err)
	}
	return received
}

func (e *numberedEnd) addMessages(t *rapid.T) {
	for range rapid.SampledFrom([]int{1, 2, 3, maxFrameMessages - 1}).Draw(t, "messages") {
		e.added++
		e.add(message(e.added))
	}
}

func (e *numberedEnd) send() {
	f := &messages.ClientFrame{Received: e.delivered}
	if e.unsent() {
		f = e.next()
	}
	e.flying = append(e.flying, f)
}

// extendLast puts more into the last frame, which waits.
func (e *numberedEnd) extendLast(t *rapid.T) {
	if len(e.flying) == 0 || e.flying[len(e.flying)-1].First == 0 {
		return
	}
	last := e.flying[len(e.flying)-1]
	had := len(asReceived(last).Messages)
	extended := e.extend(last.ProtoReflect(), last.First)
	if extended {
		last.Received = e.delivered
	}
	switch has := len(asReceived(last).Messages); {
	case has > maxFrameMessages:
		t.Fatalf("a frame has %d messages", has)
	case extended != (has > had):
		t.Fatalf("a frame of %d messages has %d now; extended: %v", had, has, extended)
	}
}

// take handles a frame of the other end.
func (e *numberedEnd) take(t *rapid.T, sent *messages.ClientFrame) {
	f := asReceived(sent)
	seen, err := e.accept(f.Received, f.First, len(f.Messages))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range f.Messages[seen:] {
		if e.arrived++; m.GetWithdraw() != e.arrived {
			t.Fatalf("message %d arrives as number %d", m.GetWithdraw(), e.arrived)
		}
	}
	e.check(t)
}

func (e *numberedEnd) check(t *rapid.T) {
	if e.confirmed > e.sent || e.sent > e.newest || e.newest > e.confirmed+uint64(len(e.pending)) || e.confirmed+uint64(len(e.pending)) != e.added || e.delivered != e.arrived {
		t.Fatalf("confirmed %d, sent %d, newest %d, pending %d of %d; delivered %d, arrived %d", e.confirmed, e.sent, e.newest, len(e.pending), e.added, e.delivered, e.arrived)
	}
	bytes := 0
	for _, m := range e.pending {
		bytes += len(m)
	}
	if bytes != e.bytes {
		t.Fatalf("%d messages have %d bytes, by the count %d", len(e.pending), bytes, e.bytes)
	}
}

// Over streams that break at any point in either direction, each message arrives once and in order. What
// no honest end sends is an error, and changes nothing.
func TestNumberedMessages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var ends [2]numberedEnd
		deliver := func(to int) {
			from := &ends[1-to]
			if len(from.flying) > 0 {
				f := from.flying[0]
				from.flying = from.flying[1:]
				ends[to].take(t, f)
			}
		}
		resume := func(tells bool) { // the first frames of both ends may have numbers
			for i := range ends {
				ends[i].flying = nil
				ends[i].restart()
			}
			for i := range ends {
				if tells {
					ends[i].flying = append(ends[i].flying, &messages.ClientFrame{Received: ends[i].delivered})
				}
			}
		}
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			i := rapid.IntRange(0, 1).Draw(t, "end")
			e := &ends[i]
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0:
				e.addMessages(t)
			case 1:
				e.send()
			case 2, 3:
				deliver(i)
			case 4:
				resume(rapid.Bool().Draw(t, "tells"))
			case 5:
				e.extendLast(t)
			case 6:
				e.wrong(t)
			}
			e.check(t)
		}
		for range 1000 {
			for i := range ends {
				ends[i].send()
				deliver(1 - i)
			}
		}
		for i, e := range ends {
			if ends[1-i].arrived != e.added || len(e.pending) > 0 {
				t.Fatalf("%d of %d messages arrive, and %d are not confirmed", ends[1-i].arrived, e.added, len(e.pending))
			}
		}
	})
}

// wrong has the end take numbers that no honest end sends.
func (e *numberedEnd) wrong(t *rapid.T) {
	received, first := e.confirmed, e.delivered+1
	switch rapid.IntRange(0, 4).Draw(t, "wrong") {
	case 0:
		received = e.newest + 1
	case 1:
		received = ^uint64(0)
	case 2:
		first = 0
	case 3:
		received, first = e.newest, e.delivered+2
	case 4:
		received, first = e.newest, ^uint64(0)
	}
	before := *e
	if seen, err := e.accept(received, first, 1); err == nil {
		t.Fatalf("received %d and first %d are taken, and %d were seen", received, first, seen)
	}
	if e.confirmed != before.confirmed || e.sent != before.sent || e.delivered != before.delivered || len(e.pending) != len(before.pending) {
		t.Fatal("numbers that are refused have an effect")
	}
}

// An end may confirm what a former stream has brought, before the present stream has it.
func TestConfirmedBeforeSent(t *testing.T) {
	t.Parallel()
	var n numbered
	for i := range uint64(4) {
		n.add(message(i + 1))
	}
	n.next()
	n.add(message(5))
	n.restart()
	if _, err := n.accept(5, 1, 1); err == nil || n.delivered != 0 || n.confirmed != 0 {
		t.Errorf("message 5, which was never sent, is confirmed: %v, delivered %d, confirmed %d", err, n.delivered, n.confirmed)
	}
	if seen, err := n.accept(3, 1, 1); err != nil || seen != 0 || n.delivered != 1 || n.confirmed != 3 {
		t.Errorf("%d seen, %v, delivered %d, confirmed %d", seen, err, n.delivered, n.confirmed)
	}
	if f := asReceived(n.next()); f.First != 4 || len(f.Messages) != 2 {
		t.Errorf("the next frame has %d messages from %d on", len(f.Messages), f.First)
	}
}

// A frame that waits is not extended by messages that do not follow its own: those between were
// confirmed meanwhile.
func TestExtendedFrameHasNoGap(t *testing.T) {
	t.Parallel()
	var n numbered
	for i := range uint64(4) {
		n.add(message(i + 1))
	}
	n.next() // all were sent
	n.restart()
	frame := n.next()
	n.sent, n.frame.messages = 2, 2
	if _, err := n.accept(3, 0, 0); err != nil {
		t.Fatal(err)
	}
	if n.extend(frame.ProtoReflect(), frame.First) {
		t.Error("a frame of messages 1 and 2 is extended, though message 3 is not in it")
	}
}

// A frame has so many bytes at most, also when messages follow those that it has.
func TestFrameBytes(t *testing.T) {
	t.Parallel()
	var n numbered
	third := &messages.ClientMessage{What: &messages.ClientMessage_Acquire{Acquire: &messages.AcquireLock{Path: strings.Repeat("a", maxFrameBytes/3)}}}
	n.add(third)
	frame := n.next()
	for range 4 {
		n.add(third)
		n.extend(frame.ProtoReflect(), frame.First)
	}
	if has := len(asReceived(frame).Messages); has != 2 {
		t.Errorf("a frame has %d messages of a third of its bytes", has)
	}
}

// Messages that come while a frame is sent go by the next frame, all of them.
func TestFramesWait(t *testing.T) {
	t.Parallel()
	sending, proceed, ended := make(chan []int), make(chan struct{}), make(chan error, 1)
	f := newFrames(func(frame *[]int) error { sending <- *frame; <-proceed; return nil }, func(err error) { ended <- err })
	add := func(n int) func(*[]int) bool {
		return func(last *[]int) bool { *last = append(*last, n); return n < 4 }
	}
	if f.extend(add(0)) {
		t.Error("no frame waits, and one is extended")
	}
	f.put(&[]int{1})
	first := <-sending
	if f.extend(add(0)) {
		t.Error("a frame is extended that is sent")
	}
	f.put(&[]int{2})
	if !f.extend(add(3)) || f.extend(add(4)) {
		t.Error("extend does not return what add does")
	}
	proceed <- struct{}{}
	second := <-sending
	if len(first) != 1 || !slices.Equal(second, []int{2, 3, 4}) {
		t.Error(first, second)
	}
	proceed <- struct{}{}
	f.close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
