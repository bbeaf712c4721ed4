package actors_test

import (
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

func TestPanicTellsActors(t *testing.T) {
	each(t, func(b *testLock) {
		config, all := testActors(b.T, 2)
		alice, bob := all[0], all[1]
		mu := b.mutex(config)
		lock := pid(b, mu)
		alice.send(lock, &messages.Acquire{RequestId: 1, Owner: "alice"})
		alice.granted(1)
		bob.send(lock, &messages.Acquire{RequestId: 1})
		b.waitNodes(2)
		actors.PanicActor(mu, 0, noCreated)
		if m := expectMessage[*messages.Lost](alice); m.GetReason() != messages.Reason_INTERNAL || m.GetRequestId() != 1 {
			b.Errorf("%v", m)
		}
		bob.refused(1, messages.Reason_INTERNAL)
		// Its PID has no actor any more, as the actor itself or protoactor answers.
		bob.send(lock, &messages.Acquire{RequestId: 2})
		msg, _ := receive(b, bob.inbox, "an answer")
		if m, ok := msg.(*messages.Refused); ok && m.GetReason() != messages.Reason_STOPPED {
			b.Errorf("%v", m)
		}
		lock = pid(b, mu)
		bob.send(lock, &messages.Acquire{RequestId: 3})
		bob.granted(3)
		bob.send(lock, &messages.Release{RequestId: 3})
		bob.released(3, 0)
	})
}
