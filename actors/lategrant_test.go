package actors

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A grant that arrives after the end of its request is released, and the log has no line about it.
func TestLateGrant(t *testing.T) {
	s := zktest.Embedded(t)
	var log strings.Builder
	locks, err := Connect(t.Context(), s.Addr(), Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	func() {
		h := &locks.Mutex(s.Path(t)).handle
		ctx, cancel := context.WithCancel(t.Context())
		request, p := newAcquisition(h)
		if request.prepare(ctx, p, nil) {
			request.watch(ctx)
			request.send()
		}
		<-p.Done()
		g, err := p.Take()
		if err != nil {
			t.Fatal(err)
		}
		// The actor answers once more, to an acquisition whose promise is complete.
		late := &acquisition{handle: h, entry: g.acquisition.entry, msg: g.acquisition.msg}
		late.Tell(&messages.Granted{Node: "late"})
		g.Release().Result()
		cancel()
	}()
	for range 20 {
		runtime.GC()
		runtime.Gosched()
	}
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
	if log.Len() > 0 {
		t.Errorf("the log says: %s", log.String())
	}
}
