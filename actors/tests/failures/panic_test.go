package failures

import (
	"testing"

	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
)

func TestPanicTellsActors(t *testing.T) {
	locktest.Each(t, func(b *locktest.Fixture) {
		config, all := locktest.OwnerActors(b.T, 2)
		alice, bob := all[0], all[1]
		mu := b.Mutex(config)
		lock := locktest.PID(b, mu)
		alice.Send(lock, &messages.Acquire{RequestId: 1, Owner: "alice"})
		alice.Granted(1)
		bob.Send(lock, &messages.Acquire{RequestId: 1})
		b.WaitNodes(2)
		alice.Panics(mu, locktest.NoCreated)
		if m := locktest.ExpectMessage[*messages.Lost](alice); m.GetReason() != messages.Reason_INTERNAL || m.GetRequestId() != 1 {
			b.Errorf("%v", m)
		}
		bob.Refused(1, messages.Reason_INTERNAL)
		// Its PID has no actor any more, as the actor itself or protoactor answers.
		bob.Send(lock, &messages.Acquire{RequestId: 2})
		msg, _ := locktest.Receive(b, bob.Inbox, "an answer")
		if m, ok := msg.(*messages.Refused); ok && m.GetReason() != messages.Reason_STOPPED {
			b.Errorf("%v", m)
		}
		lock = locktest.PID(b, mu)
		bob.Send(lock, &messages.Acquire{RequestId: 3})
		bob.Granted(3)
		bob.Send(lock, &messages.Release{RequestId: 3})
		bob.Released(3, 0)
	})
}
