package group_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/access"
	"github.com/actorlock/actorlock/actors/internal/campaign"
	"github.com/actorlock/actorlock/actors/internal/group"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// A member that leaves while a record of its is on its way, the first one or a later one, has left once that
// is gone, too: whenever it leaves, nobody sees it afterwards.
func TestLeaveBehindARecord(t *testing.T) {
	for after := time.Duration(0); after < 600*time.Millisecond; after += 50 * time.Millisecond {
		t.Run(after.String(), func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				join := func(locks *actors.Locks) *group.Membership {
					f := group.NewFollower(access.Manager(locks), v.LockPath, 1)
					return f.Join(context.Background(), nil, func(_ int, term *campaign.Term) { <-term.Context().Done() })
				}
				leader, far := join(v.Locks()), v.Locks()
				awaitListed(leader)
				v.Inject(embedded.Fault{Session: far.Session().ID, Times: -1, Action: embedded.DelayRequest, Delay: 100 * time.Millisecond})
				m := join(far) // and publishes that it waits
				time.Sleep(after)
				m.Leave()
				<-m.Done()
				for range 50 {
					if nodes := v.Nodes(v, group.Members(v.LockPath)); len(nodes) != 1 {
						v.Errorf("the member has left, and the list has the nodes %v", nodes)
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				leader.Leave()
				<-leader.Done()
			})
		})
	}
}

// A member that leaves while no server answers leaves when its session can have expired.
func TestLeaveWithoutAnswer(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		sent := v.Inject(embedded.Fault{Op: embedded.OpMulti, Path: group.Members(v.LockPath) + "/_c_", Action: embedded.BlackHoleAfter})
		m := group.NewFollower(access.Manager(locks), v.LockPath, 1).Join(context.Background(), nil, func(int, *campaign.Term) {})
		<-sent.Fired()
		restore := v.CutOff()
		m.Leave()
		began := time.Now()
		<-m.Done()
		if after := time.Since(began); after > locks.Session().Timeout {
			t.Errorf("the member has left after %v", after)
		}
		restore()
	})
}

// A member that leaves while there is no session leaves at once.
func TestLeaveWithoutASession(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		locks := v.Locks()
		m := group.NewFollower(access.Manager(locks), v.LockPath, 1).Join(context.Background(), nil, func(_ int, term *campaign.Term) { <-term.Context().Done() })
		awaitListed(m)
		restore := v.CutOff()
		time.Sleep(2 * locks.Session().Timeout)
		m.Leave()
		began := time.Now()
		<-m.Done()
		if after := time.Since(began); after > time.Second {
			t.Errorf("the member has left after %v", after)
		}
		restore()
	})
}

// holdUp is a Monitor that holds up the actor of a list of members when it grants a record.
type holdUp struct {
	path          string
	granting, end chan struct{}
}

func (holdUp) Start(func() actors.Stats) func() { return func() {} }
func (holdUp) Batch(int)                        {}
func (holdUp) Refused(time.Duration, error)     {}
func (holdUp) Ended(time.Duration, error)       {}

func (h holdUp) Request(_ context.Context, r actors.MonitoredRequest) actors.RequestMonitor {
	if r.Path != h.path {
		return nil
	}
	return h
}

func (h holdUp) Granted(time.Duration, actors.Token) {
	h.granting <- struct{}{}
	<-h.end
}

// A member leaves though its session is lost between the grant of its record and its Cancel, which has no answer.
func TestLeaveAtALoss(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		h := holdUp{group.Members(v.LockPath), make(chan struct{}), make(chan struct{})}
		locks := v.Locks(func(cfg *actors.Config) { cfg.Monitor = h })
		m := group.NewFollower(access.Manager(locks), v.LockPath, 1).Join(context.Background(), nil, func(int, *campaign.Term) {})
		<-h.granting
		v.Expire(locks.Session().ID)
		<-time.After(time.Minute) // the actor of the list has yet to hear of the loss
		m.Leave()
		synctest.Wait()
		close(h.end)
		select {
		case <-m.Done():
		case <-time.After(time.Minute):
			t.Error("the member has not left")
		}
	})
}

// A member that leaves while the create of one of its campaigns is under way has left once the node of that
// campaign is gone.
func TestLeaveBehindACampaign(t *testing.T) {
	locktest.Bubble(t, func(v *locktest.Virtual) {
		join := func(locks *actors.Locks) *group.Membership {
			f := group.NewFollower(access.Manager(locks), v.LockPath, 1)
			return f.Join(context.Background(), nil, func(_ int, term *campaign.Term) { <-term.Context().Done() })
		}
		leader, far := join(v.Locks()), v.Locks()
		awaitListed(leader)
		campaigns := v.Inject(embedded.Fault{Op: embedded.OpMulti, Path: group.LockPath(v.LockPath, 0), Session: far.Session().ID,
			Action: embedded.DelayReply, Delay: 100 * time.Millisecond})
		m := join(far)
		<-campaigns.Fired()
		m.Leave()
		<-m.Done()
		if nodes := v.Nodes(v, group.LockPath(v.LockPath, 0)); len(nodes) != 1 {
			v.Errorf("the member has left, and the partition has the nodes %v", nodes)
		}
		leader.Leave()
		<-leader.Done()
	})
}

// A member that leaves while no server answers for one of its campaigns leaves when its session can have
// expired, or when its process closes its locks.
func TestLeaveBehindACampaignWithoutAnswer(t *testing.T) {
	for name, end := range map[string]func(v *locktest.Virtual, far *actors.Locks) (within time.Duration){
		"session": func(_ *locktest.Virtual, far *actors.Locks) time.Duration { return far.Session().Timeout },
		"close": func(_ *locktest.Virtual, far *actors.Locks) time.Duration {
			go far.Close()
			return 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) {
				far := v.Locks()
				campaigns := v.Inject(embedded.Fault{Op: embedded.OpMulti, Path: group.LockPath(v.LockPath, 0), Session: far.Session().ID, Action: embedded.BlackHoleAfter})
				m := group.NewFollower(access.Manager(far), v.LockPath, 1).Join(context.Background(), nil, func(int, *campaign.Term) {})
				<-campaigns.Fired()
				restore := v.CutOff()
				m.Leave()
				synctest.Wait()
				within, began := end(v, far), time.Now()
				<-m.Done()
				if after := time.Since(began); after > within {
					t.Errorf("the member has left after %v, later than %v", after, within)
				}
				restore()
			})
		})
	}
}

// awaitListed waits until a member is in the list.
func awaitListed(m *group.Membership) {
	for {
		s, changed := m.State()
		if s != nil && s.View != nil {
			if _, is := s.View.Find(m.ID); is {
				return
			}
		}
		<-changed
	}
}
