package remote

import (
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
			if first, messages := out.next(); len(messages) > 0 {
				flying = append(flying, frame{first, messages})
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				for range rapid.IntRange(1, 3).Draw(t, "messages") {
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
	out.next()
	if err := out.confirm(2); err == nil {
		t.Error("a message is confirmed that does not exist")
	}
	if err := out.confirm(^uint64(0)); err == nil {
		t.Error("the greatest number is confirmed")
	}
}
