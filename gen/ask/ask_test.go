package ask_test

import (
	"context"
	"errors"
	"testing"

	"github.com/actorlock/actorlock/gen/ask"
)

// inbox is a recipient that keeps its messages.
type inbox []any

func (m *inbox) Tell(msg any) { *m = append(*m, msg) }

// answerer is a recipient that answers each message by a function.
type answerer func(reply ask.Reply[*string], msg any)

func (a answerer) Tell(msg any) {
	call := msg.(*ask.Call)
	a(ask.ReplyTo[*string](call.From), call.Message)
}

func TestAsk(t *testing.T) {
	v := text("pong")
	f := ask.Ask[*string](answerer(func(reply ask.Reply[*string], msg any) {
		if msg != "ping" {
			t.Errorf("asked %v", msg)
		}
		reply.Answer(v)
		reply.Refuse(errAnswer) // ignored: the future is complete
	}), "ping")
	if got, err := f.Result(); got != v || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	f = ask.Ask[*string](answerer(func(reply ask.Reply[*string], _ any) { reply.Refuse(errAnswer) }), "ping")
	if got, err := f.Result(); got != nil || !errors.Is(err, errAnswer) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAnswerLater(t *testing.T) {
	var kept ask.Reply[*string]
	f := ask.Ask[*string](answerer(func(reply ask.Reply[*string], _ any) { kept = reply }), "ping")
	if complete(f) {
		t.Fatal("complete without an answer")
	}
	if kept.Recipient() == nil {
		t.Fatal("the reply has no recipient")
	}
	go kept.Answer(text("late"))
	if got, err := f.Result(); err != nil || *got != "late" {
		t.Errorf("%v, %v", got, err)
	}
}

// Wanted reports whether the recipient of a reply still waits for it.
func TestWanted(t *testing.T) {
	var kept ask.Reply[*string]
	request := func() *ask.Future[*string] {
		return ask.Ask[*string](answerer(func(reply ask.Reply[*string], _ any) { kept = reply }), "ping")
	}
	wanted := func(want bool, when string) {
		t.Helper()
		if got := kept.Wanted(); got != want {
			t.Errorf("%s: wanted is %v", when, got)
		}
	}
	f := request()
	wanted(true, "asked")
	f.Cancel()
	wanted(false, "cancelled")
	request()
	kept.Answer(text("pong"))
	wanted(false, "answered")
	request()
	kept.Refuse(errAnswer)
	wanted(false, "refused")
	f = request()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.Wait(ended); err == nil {
		t.Error("Wait returned a value of a pending future")
	}
	wanted(true, "Wait ended early, and may be called again")
	kept = ask.ReplyTo[*string](&inbox{})
	wanted(true, "asked by an actor")
	kept = ask.Reply[*string]{}
	wanted(false, "zero reply")
}

func TestSend(t *testing.T) {
	var to, from inbox
	ask.Send(&to, "hello", &from)
	call, ok := to[0].(*ask.Call)
	if !ok || call.Message != "hello" || call.From != &from {
		t.Fatalf("%#v", to)
	}
	ask.ReplyTo[int](call.From).Answer(1)
	ask.ReplyTo[int](call.From).Refuse(errAnswer)
	if len(from) != 2 || from[0] != 1 || from[1] != errAnswer {
		t.Errorf("%v", from)
	}
}

func TestZeroReply(t *testing.T) {
	var reply ask.Reply[int]
	reply.Answer(1)
	reply.Refuse(errAnswer)
	if reply.Recipient() != nil || ask.ReplyTo[int](nil).Recipient() != nil {
		t.Error("a zero reply has a recipient")
	}
}
