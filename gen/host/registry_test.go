package host_test

import (
	"errors"
	"log/slog"
	"runtime"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
)

// The registry of a private system has all that protoactor has registered, and takes names as
// usual.
func TestRegistryOfAPrivateSystem(t *testing.T) {
	own := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	defer own.Shutdown()
	s := host.NewSystem(nil, nil)
	defer s.Close()
	n := 0
	for _, some := range own.ProcessRegistry.LocalPIDs.LocalPIDs {
		for _, name := range some.Keys() {
			n++
			if _, found := s.Actors.ProcessRegistry.GetLocal(name); !found {
				t.Errorf("%s is not registered", name)
			}
		}
	}
	if n == 0 {
		t.Error("protoactor has registered nothing")
	}
	spawn := func(name string) error {
		_, err := s.Spawn(name, func(*host.Ref) host.Actor { return newProbe(func(ask.Recipient, any) {}) })
		return err
	}
	if err := spawn("a"); err != nil {
		t.Error(err)
	}
	if err := spawn("a"); !errors.Is(err, actor.ErrNameExists) {
		t.Errorf("%v for a second actor of the name", err)
	}
}

// heap returns the bytes that are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestMemoryOfAPrivateSystem(t *testing.T) {
	const n, most = 20, 100 << 10 // bytes; 2.9 MB with protoactor's registry
	before := heap()
	var all []*host.System
	for range n {
		all = append(all, host.NewSystem(nil, nil))
	}
	if each := (heap() - before) / n; each > most {
		t.Errorf("a System takes %d bytes, want %d at most", each, most)
	} else {
		t.Logf("a System takes %d bytes", each)
	}
	for _, s := range all {
		s.Close()
	}
}
