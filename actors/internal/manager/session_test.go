package manager_test

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// An actor that starts while the session changes has one of its states from the start, and hears of
// each later one, once and in their order.
func TestStartMissesNoSessionChange(t *testing.T) {
	const states, actors = 1000, 500
	system := host.NewSystem(nil, nil)
	defer system.Close()
	m := manager.New(system, epochRecorders{}, manager.Settings{Log: slog.New(slog.DiscardHandler)})
	change := func(epoch uint64) {
		m.Tell(&messages.SessionChanged{State: messages.SessionState_CONNECTED, Epoch: epoch})
	}
	change(1)
	var entries []*manager.Entry
	var both sync.WaitGroup
	both.Go(func() {
		for epoch := uint64(2); epoch <= states; epoch++ {
			change(epoch)
		}
	})
	both.Go(func() {
		for i := range actors {
			e, err := m.Find(fmt.Sprintf("/%d", i), recipes.Mutex)
			if err != nil {
				t.Error(err)
				return
			}
			entries = append(entries, e)
		}
	})
	both.Wait()
	defer m.Close()
	for _, e := range entries {
		heard := make(chan []uint64)
		e.Self.Tell(heard)
		first := e.SessionAtStart.GetEpoch()
		var want []uint64
		for epoch := first + 1; epoch <= states; epoch++ {
			want = append(want, epoch)
		}
		if heard := <-heard; !slices.Equal(heard, want) {
			t.Fatalf("an actor that began with state %d heard of %d states, from %v on", first, len(heard), heard[:min(3, len(heard))])
		}
	}
}

// epochRecorders makes actors that note the epochs of the states that they hear of.
// Their session says nothing by itself.
type epochRecorders struct{ manager.Remote }

func (s epochRecorders) Ref() messages.BridgeRef            { return messages.BridgeRef{To: s} }
func (epochRecorders) Tell(any)                             {}
func (epochRecorders) NewActor(e *manager.Entry) host.Actor { return &epochRecorder{entry: e} }

type epochRecorder struct {
	entry *manager.Entry
	heard []uint64
}

func (r *epochRecorder) Receive(_ ask.Recipient, msg any) {
	switch msg := msg.(type) {
	case manager.StateChange:
		r.heard = append(r.heard, msg.Epoch)
	case chan []uint64:
		msg <- r.heard
	}
}

func (r *epochRecorder) Stopped(any)             { r.entry.Manager.Stopped() }
func (*epochRecorder) Refuse(ask.Recipient, any) {}
