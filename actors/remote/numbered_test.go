package remote

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"
)

// Over streams that break at any point, each message arrives once and in order.
func TestNumberedMessages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type frame struct {
			first    uint64
			messages []*wrapperspb.UInt64Value
		}
		var (
			out             outbox[*wrapperspb.UInt64Value]
			in              arrivals
			added, arrived  uint64
			flying          []frame
			confirmations   []uint64
			sizes           = rapid.SampledFrom([]uint64{1, 7, 1 << 40})
			deliver, answer func()
		)
		deliver = func() {
			if len(flying) == 0 {
				return
			}
			f := flying[0]
			flying = flying[1:]
			seen, err := in.accept(f.first, len(f.messages))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range f.messages[seen:] {
				if arrived++; m.Value>>8 != arrived {
					t.Fatalf("message %d arrives as number %d", m.Value>>8, arrived)
				}
			}
			confirmations = append(confirmations, in.received)
		}
		answer = func() {
			if len(confirmations) == 0 {
				return
			}
			if err := out.confirm(confirmations[0]); err != nil {
				t.Fatal(err)
			}
			confirmations = confirmations[1:]
		}
		send := func() {
			if first, messages := out.next(nil); len(messages) > 0 {
				flying = append(flying, frame{first, messages})
			}
		}
		extend := func() {
			if len(flying) == 0 {
				return
			}
			last := &flying[len(flying)-1]
			first, messages := out.next(last.messages)
			if last.messages = messages; first != last.first {
				t.Fatalf("a frame begins with message %d, and with %d once it is extended", last.first, first)
			}
			if len(messages) > maxFrameMessages {
				t.Fatalf("a frame has %d messages", len(messages))
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				for range rapid.SampledFrom([]int{1, 2, 3, maxFrameMessages - 1}).Draw(t, "messages") {
					added++
					out.add(wrapperspb.UInt64(added<<8 | sizes.Draw(t, "size")&0xff))
				}
			case 1:
				send()
			case 2:
				deliver()
			case 3:
				answer()
			case 4: // the stream breaks; the next one begins with what the other end has
				flying, confirmations = nil, nil
				if err := out.confirm(in.received); err != nil {
					t.Fatal(err)
				}
				out.restart()
			case 5:
				extend()
			}
		}
		for len(flying) > 0 {
			deliver()
		}
		for arrived < added {
			before := arrived
			send()
			for len(flying) > 0 {
				deliver()
			}
			if arrived == before {
				t.Fatalf("%d of %d messages arrive", arrived, added)
			}
		}
		for len(confirmations) > 0 {
			answer()
		}
		if len(out.unconfirmed) > 0 {
			t.Fatalf("%d messages stay", len(out.unconfirmed))
		}
	})
}

// What no honest end sends is an error.
func TestNumberedMessagesWrong(t *testing.T) {
	t.Parallel()
	var in arrivals
	if _, err := in.accept(2, 1); err == nil {
		t.Error("a message was left out")
	}
	if _, err := in.accept(0, 1); err == nil {
		t.Error("a message has the number 0")
	}
	if _, err := in.accept(1, 3); err != nil || in.received != 3 {
		t.Error(err)
	}
	if seen, err := in.accept(1, 2); err != nil || seen != 2 || in.received != 3 {
		t.Error("two messages that have come before", seen, err)
	}
	var out outbox[*wrapperspb.UInt64Value]
	out.add(wrapperspb.UInt64(1))
	if err := out.confirm(1); err == nil {
		t.Error("a message is confirmed that was not sent")
	}
	out.next(nil)
	if err := out.confirm(2); err == nil {
		t.Error("a message is confirmed that does not exist")
	}
	if err := out.confirm(^uint64(0)); err == nil {
		t.Error("the greatest number is confirmed")
	}
	if err := out.confirm(1); err != nil {
		t.Error(err)
	}
	out.add(wrapperspb.UInt64(2))
	one := []*wrapperspb.UInt64Value{wrapperspb.UInt64(1)}
	if first, messages := out.next(one); first != 1 || len(messages) != 2 { // the other end has confirmed a frame that waits
		t.Error(first, messages)
	}
}

// A frame has so many bytes at most, also when messages follow those that it has.
func TestFrameBytes(t *testing.T) {
	t.Parallel()
	var out outbox[*wrapperspb.BytesValue]
	var frame []*wrapperspb.BytesValue
	for range 4 {
		out.add(wrapperspb.Bytes(make([]byte, maxFrameBytes/3)))
		_, frame = out.next(frame)
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
