package zkbridge

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Connections are cut and sessions end under load. Each request is answered, no two nodes have one
// token, and no node is left whose create was not answered or whose release was.
func TestChaos(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		proxy := zktest.Proxy(t, s.Addr())
		b := connected(t, Config{Servers: proxy.Addr()})
		dir := s.Path(t)
		stop := make(chan struct{})
		var held, tokens sync.Map
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				client := &chaosUser{t: t, bridge: b, held: &held, tokens: &tokens, answers: make(mailbox, 1)}
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
						client.round(fmt.Sprintf("%s-%d", dir, i%3), fmt.Sprintf("n%d-%d-", i, n), n%4 == 0)
					}
				}
			})
		}
		for i := range 5 {
			zktest.Eventually(t, timeLimit, func() bool { return b.Session().State == messages.SessionState_CONNECTED }, "connected")
			<-time.After(rand.N(300 * time.Millisecond))
			if i == 3 {
				s.Expire(t, b.Session().ID)
				continue
			}
			proxy.Cut()
		}
		zktest.Eventually(t, timeLimit, func() bool { now := b.Session(); return now.State == messages.SessionState_CONNECTED && now.Epoch > 1 },
			"connected, in a session after the one that ended")
		close(stop)
		wg.Wait()
		count := 0
		for i := range 3 {
			for _, name := range s.Nodes(t, fmt.Sprintf("%s-%d", dir, i)) {
				count++
				if epoch, ok := held.Load(name); !ok || epoch != b.Session().Epoch {
					t.Errorf("%s is left; its create was answered in epoch %v", name, epoch)
				}
			}
		}
		held.Range(func(_, epoch any) bool {
			if epoch == b.Session().Epoch {
				count--
			}
			return true
		})
		if count != 0 {
			t.Errorf("%d nodes too many", count)
		}
	})
}

// chaosUser creates nodes, and releases most of them.
type chaosUser struct {
	t       *testing.T
	bridge  *internals
	held    *sync.Map // epoch by the name of each node that was not released
	tokens  *sync.Map
	answers mailbox
}

func (u *chaosUser) round(dir, prefix string, keep bool) {
	u.bridge.Ref().SendCreate(&messages.Create{Epoch: u.bridge.Session().Epoch, Directory: dir, Prefix: prefix}, u.answers)
	created, ok := u.answer().(*messages.Created)
	if !ok {
		return
	}
	if _, twice := u.tokens.LoadOrStore(fmt.Sprint(created.GetCzxid(), "-", created.GetStep(), dir), created); twice {
		u.t.Errorf("two nodes have one token: %v", created)
	}
	if keep {
		u.held.Store(created.GetNode(), created.GetEpoch())
		return
	}
	u.bridge.Ref().SendReleaseNode(&messages.ReleaseNode{Epoch: created.GetEpoch(), Directory: dir, Node: created.GetNode()}, u.answers)
	switch m := u.answer().(type) {
	case *messages.NodeReleased:
	case *messages.Failed:
		if m.GetReason() != messages.Reason_SESSION_LOST {
			u.t.Errorf("release: %v", m)
		}
	}
}

func (u *chaosUser) answer() any {
	select {
	case m := <-u.answers:
		return m
	case <-time.After(timeLimit):
		u.t.Error("no answer")
		return nil
	}
}
