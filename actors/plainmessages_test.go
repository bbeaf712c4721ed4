package actors

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Requests without options share their messages, and no actor writes to one.
func TestPlainMessagesAreNotWritten(t *testing.T) {
	s := zktest.Embedded(t)
	locks, err := Connect(t.Context(), s.Addr(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	rw := locks.RWMutex("/rw")
	custom := locks.Custom("/custom", "one-way street", queue.Rule{Permits: 1, BlockedBy: []queue.KindSet{queue.Kinds(1), queue.Kinds(0)},
		Markers: []string{"-up-", "-down-"}}, "up", "down")
	for _, h := range []*handle{
		&locks.Mutex("/mutex").handle, &locks.Mutex("/local", LocalQueue(LocalQueueConfig{})).handle, &rw.Read().handle, &rw.Write().handle,
		&locks.Semaphore("/semaphore", 2).handle, &locks.SemaphoreMutex("/semaphore-mutex").handle,
		&locks.MultiLock(locks.Mutex("/a"), rw.Read(), locks.Semaphore("/semaphore", 2)).handle,
		&custom.Kind("down").handle,
	} {
		held, err := h.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h.Acquire(t.Context()).Cancel()
		next := h.Acquire(t.Context())
		if err := held.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if g, err := next.Wait(t.Context()); err != nil {
			t.Fatal(err)
		} else if err := g.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		for kind, msg := range plainAcquires {
			if !proto.Equal(msg, &messages.Acquire{Kind: uint32(kind)}) {
				t.Fatalf("after a request for the %v the message of kind %d is %v", h.recipe, kind, msg)
			}
		}
	}
}
