package counter

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/actorlock/actorlock/gen/ask"
)

// count is a handler; its context is the sender of the message.
type count struct {
	n       int64
	adders  []ask.Recipient
	waiting map[int64]ask.Reply[*Value]
}

var _ CounterHandler[ask.Recipient] = (*count)(nil)

func (c *count) Add(from ask.Recipient, msg *AddRequest) {
	c.n += msg.N
	c.adders = append(c.adders, from)
	for at, reply := range c.waiting {
		if at <= c.n {
			reply.Answer(&Value{N: c.n})
			delete(c.waiting, at)
		}
	}
}

func (c *count) Get(_ ask.Recipient, _ *GetRequest, reply ask.Reply[*Value]) {
	reply.Answer(&Value{N: c.n})
}

func (c *count) Await(_ ask.Recipient, msg *AwaitRequest, reply ask.Reply[*Value]) {
	if msg.AtLeast < 0 {
		reply.Refuse(errNegative)
		return
	}
	c.waiting[msg.AtLeast] = reply
}

var errNegative = errors.New("negative")

// Tell implements ask.Recipient: count handles each message in the goroutine of the sender.
func (c *count) Tell(msg any) {
	var from ask.Recipient
	if call, ok := msg.(*ask.Call); ok {
		msg, from = call.Message, call.From
	}
	if !DispatchCounter(c, from, msg, from) && from != nil {
		from.Tell(errors.ErrUnsupported)
	}
}

func start() (*count, CounterRef) {
	c := &count{waiting: map[int64]ask.Reply[*Value]{}}
	return c, CounterRef{To: c}
}

// received is a recipient that keeps its messages.
type received []any

func (r *received) Tell(msg any) { *r = append(*r, msg) }

func TestAnswerAtOnce(t *testing.T) {
	_, ref := start()
	ref.Add(&AddRequest{N: 2})
	ref.Add(&AddRequest{N: 3})
	if v, err := ref.Get(&GetRequest{}).Result(); err != nil || v.N != 5 {
		t.Errorf("got %v, %v", v, err)
	}
}

func TestDeferredAnswer(t *testing.T) {
	_, ref := start()
	future := ref.Await(&AwaitRequest{AtLeast: 2})
	ref.Add(&AddRequest{N: 1})
	select {
	case <-future.Done():
		t.Fatal("answered too early")
	default:
	}
	ref.Add(&AddRequest{N: 1})
	if v, err := future.Result(); err != nil || v.N != 2 {
		t.Errorf("got %v, %v", v, err)
	}
}

func TestRefusal(t *testing.T) {
	_, ref := start()
	if v, err := ref.Await(&AwaitRequest{AtLeast: -1}).Result(); v != nil || err != errNegative {
		t.Errorf("got %v, %v", v, err)
	}
}

func TestSendAnswersTheSender(t *testing.T) {
	c, ref := start()
	var sender received
	ref.SendAwait(&AwaitRequest{AtLeast: 4}, &sender)
	ref.SendAdd(&AddRequest{N: 4}, &sender)
	ref.SendGet(&GetRequest{}, nil) // without a sender
	if len(c.adders) != 1 || c.adders[0] != &sender {
		t.Errorf("senders of Add: %v", c.adders)
	}
	if len(sender) != 1 || !proto.Equal(sender[0].(*Value), &Value{N: 4}) {
		t.Errorf("sender got %v", sender)
	}
}

func TestDispatchTakesItsOwnMessagesOnly(t *testing.T) {
	c, _ := start()
	for _, m := range CounterMessages() {
		if !DispatchCounter(c, nil, m, nil) {
			t.Errorf("%T is not dispatched", m)
		}
	}
	if n := len(CounterMessages()); n != 3 {
		t.Errorf("%d messages", n)
	}
	for _, m := range []any{nil, "add", AddRequest{}, &Value{}, &emptypb.Empty{}} {
		if DispatchCounter(c, nil, m, nil) {
			t.Errorf("%T is dispatched", m)
		}
	}
}

func TestRefDoesNotAllocate(t *testing.T) {
	to, msg := discard{}, &AddRequest{N: 1}
	if n := testing.AllocsPerRun(100, func() { CounterRef{To: to}.Add(msg) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

type discard struct{}

func (discard) Tell(any) {}
