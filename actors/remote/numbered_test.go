package remote

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"
)

// numberedEnd is an end of a lease in a history.
type numberedEnd struct {
	numbered[*wrapperspb.UInt64Value]
	added, arrived uint64
	flying         []numberedFrame // from this end, on the present stream
}

// numberedFrame is a frame of a history.
type numberedFrame struct {
	received, first uint64
	messages        []*wrapperspb.UInt64Value
}

func (e *numberedEnd) addMessages(t *rapid.T) {
	for range rapid.SampledFrom([]int{1, 2, 3, maxFrameMessages - 1}).Draw(t, "messages") {
		e.added++
		e.add(wrapperspb.UInt64(e.added))
	}
}

func (e *numberedEnd) send() {
	f := numberedFrame{received: e.delivered}
	if e.unsent() {
		f.first, f.messages = e.nextFrame()
	}
	e.flying = append(e.flying, f)
}

// extendLast puts more into the last frame, which waits.
func (e *numberedEnd) extendLast(t *rapid.T) {
	if len(e.flying) == 0 || len(e.flying[len(e.flying)-1].messages) == 0 {
		return
	}
	last := &e.flying[len(e.flying)-1]
	last.received, last.messages = e.delivered, e.extend(last.first, last.messages)
	if len(last.messages) > maxFrameMessages {
		t.Fatalf("a frame has %d messages", len(last.messages))
	}
}

// take handles a frame of the other end.
func (e *numberedEnd) take(t *rapid.T, f numberedFrame) {
	seen, err := e.accept(f.received, f.first, len(f.messages))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range f.messages[seen:] {
		if e.arrived++; m.Value != e.arrived {
			t.Fatalf("message %d arrives as number %d", m.Value, e.arrived)
		}
	}
	e.check(t)
}

func (e *numberedEnd) check(t *rapid.T) {
	if e.confirmed > e.sent || e.sent > e.newest || e.newest > e.confirmed+uint64(len(e.pending)) || e.confirmed+uint64(len(e.pending)) != e.added || e.delivered != e.arrived {
		t.Fatalf("confirmed %d, sent %d, newest %d, pending %d of %d; delivered %d, arrived %d", e.confirmed, e.sent, e.newest, len(e.pending), e.added, e.delivered, e.arrived)
	}
	bytes := 0
	for _, size := range e.sizes {
		bytes += size
	}
	if len(e.sizes) != len(e.pending) || bytes != e.bytes {
		t.Fatalf("%d messages of %d sizes have %d bytes, by the count %d", len(e.pending), len(e.sizes), bytes, e.bytes)
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
					ends[i].flying = append(ends[i].flying, numberedFrame{received: ends[i].delivered})
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
	f := numberedFrame{received: e.confirmed, first: e.delivered + 1, messages: make([]*wrapperspb.UInt64Value, 1)}
	switch rapid.IntRange(0, 4).Draw(t, "wrong") {
	case 0:
		f.received = e.newest + 1
	case 1:
		f.received = ^uint64(0)
	case 2:
		f.first = 0
	case 3:
		f.received, f.first = e.newest, e.delivered+2
	case 4:
		f.received, f.first = e.newest, ^uint64(0)
	}
	before := *e
	if seen, err := e.accept(f.received, f.first, len(f.messages)); err == nil {
		t.Fatalf("received %d and first %d are taken, and %d were seen", f.received, f.first, seen)
	}
	if e.confirmed != before.confirmed || e.sent != before.sent || e.delivered != before.delivered || len(e.pending) != len(before.pending) {
		t.Fatal("numbers that are refused have an effect")
	}
}

// An end may confirm what a former stream has brought, before the present stream has it.
func TestConfirmedBeforeSent(t *testing.T) {
	t.Parallel()
	var n numbered[*wrapperspb.UInt64Value]
	for i := range uint64(4) {
		n.add(wrapperspb.UInt64(i + 1))
	}
	n.nextFrame()
	n.add(wrapperspb.UInt64(5))
	n.restart()
	if _, err := n.accept(5, 1, 1); err == nil || n.delivered != 0 || n.confirmed != 0 {
		t.Errorf("message 5, which was never sent, is confirmed: %v, delivered %d, confirmed %d", err, n.delivered, n.confirmed)
	}
	if seen, err := n.accept(3, 1, 1); err != nil || seen != 0 || n.delivered != 1 || n.confirmed != 3 {
		t.Errorf("%d seen, %v, delivered %d, confirmed %d", seen, err, n.delivered, n.confirmed)
	}
	if first, all := n.nextFrame(); first != 4 || len(all) != 2 {
		t.Errorf("the next frame has %d messages from %d on", len(all), first)
	}
}

// A frame that waits is not extended by messages that do not follow its own: those between were
// confirmed meanwhile.
func TestExtendedFrameHasNoGap(t *testing.T) {
	t.Parallel()
	var n numbered[*wrapperspb.UInt64Value]
	for i := range uint64(maxFrameMessages + 2) {
		n.add(wrapperspb.UInt64(i + 1))
	}
	n.nextFrame()
	n.nextFrame() // all were sent
	n.restart()
	first, all := n.nextFrame()
	all = all[:2]
	n.sent = first + 1
	if _, err := n.accept(first+2, 0, 0); err != nil {
		t.Fatal(err)
	}
	if extended := n.extend(first, all); len(extended) != 2 {
		t.Errorf("a frame of messages %d and %d is extended to %d, though message %d is not in it", first, first+1, len(extended), first+2)
	}
}

// A frame has so many bytes at most, also when messages follow those that it has.
func TestFrameBytes(t *testing.T) {
	t.Parallel()
	var n numbered[*wrapperspb.BytesValue]
	n.add(wrapperspb.Bytes(make([]byte, maxFrameBytes/3)))
	first, frame := n.nextFrame()
	for range 4 {
		n.add(wrapperspb.Bytes(make([]byte, maxFrameBytes/3)))
		frame = n.extend(first, frame)
	}
	if len(frame) != 2 {
		t.Errorf("a frame has %d messages of a third of its bytes", len(frame))
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
