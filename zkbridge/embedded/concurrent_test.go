package embedded_test

import (
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// Sessions begin, send requests and end while the test injects faults and controls the server, all
// at once, for the race detector.
func TestConcurrentClients(t *testing.T) {
	s, err := embedded.Start(embedded.ServerConfig{TickTime: 10 * time.Millisecond, ContainerInterval: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range uint64(16) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(w, 0))
			for range 20 {
				randomClient(t, s, r)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	actions := []embedded.Action{embedded.CutBefore, embedded.DropReply, embedded.CutAfter, embedded.DelayRequest,
		embedded.DelayReply, embedded.ExpireSession}
	for i := 0; ; i++ {
		select {
		case <-done:
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			return
		default:
		}
		s.Inject(embedded.Fault{Action: actions[i%len(actions)], Nth: 20, Delay: time.Millisecond})
		switch i % 10 {
		case 0:
			s.Freeze(0)
		case 3:
			s.Thaw(0)
		case 4:
			s.Pause()
		case 6:
			s.Resume()
		case 8:
			s.DropConnections()
		default:
			for _, sess := range s.Sessions() {
				if i%50 == 5 {
					s.Expire(sess.ID)
				}
			}
			s.Dump()
			s.Watches()
		}
	}
}

// randomClient opens a connection, sends random requests, and closes the connection.
func randomClient(t *testing.T, s *embedded.Server, r *rand.Rand) {
	nc, err := s.Dial(t.Context(), "", "")
	if err != nil {
		t.Error(err)
		return
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(50 * time.Millisecond))
	go io.Copy(io.Discard, nc)
	frame := func(fields ...any) error {
		b := pack(fields...)
		_, err := nc.Write(append(pack(len(b)), b...))
		return err
	}
	err = frame(0, int64(0), 100, int64(0), make([]byte, 16))
	for i := 0; i < 30 && err == nil; i++ {
		path := "/" + string(rune('a'+r.IntN(4)))
		switch r.IntN(5) {
		case 0:
			err = frame(i, embedded.OpCreate, path, []byte(nil), open, r.IntN(4))
		case 1:
			err = frame(i, embedded.OpDelete, path, -1)
		case 2:
			err = frame(i, embedded.OpCreateContainer, path, []byte(nil), open, 4)
		case 3:
			err = frame(i, embedded.OpGetChildren2, "/", true)
		case 4:
			err = frame(i, embedded.OpAddWatch, path, r.IntN(2))
		}
	}
}
