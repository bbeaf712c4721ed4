package zkbridge

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

const upgrading = "localSessionsUpgradingEnabled" // the setting that helps

// On servers with local sessions that they do not upgrade, a program ends at its start, with the setting
// that helps. In a process that had a session before, each create fails with it, alone or among others, until
// the servers are set as before. A lock would wait for ever: within a transaction they say that the session
// has expired.
func TestLocalSessions(t *testing.T) {
	t.Parallel()
	zktest.OneRunIn(t, 8)
	s := zktest.Ensemble(t, 3)
	var users []*user
	for _, member := range s.Members() {
		u := newUser(t, connected(t, Config{Servers: member.Addr(), SessionTimeout: time.Second}))
		u.createdInSomeSession(s.Path(t))
		users = append(users, u)
	}
	s.Reconfigure(t, "localSessionsEnabled=true", upgrading+"=false")
	for _, member := range s.Members() {
		system := host.NewSystem(nil, nil)
		b, err := Open(system, Config{Servers: member.Addr()})
		must(t, err)
		err = b.Connected(within(t))
		if !errors.Is(err, messages.Reason_UNAVAILABLE) || !strings.Contains(err.Error(), upgrading) {
			t.Errorf("leader %v: %v", member == s.Leader(t), err)
		}
		b.Close()
		system.Close()
	}
	for _, u := range users {
		zktest.Eventually(t, zktest.TimeLimit, func() bool { return u.bridge.NoTokens() != nil }, "the session is a local one")
		zktest.Eventually(t, zktest.TimeLimit, func() bool { return u.refusedInLocalSession() }, "a session that lasts until its answers")
	}
	s.Reconfigure(t, "localSessionsEnabled=false")
	for _, u := range users {
		zktest.Eventually(t, zktest.TimeLimit, func() bool { return u.bridge.NoTokens() == nil }, "the session has tokens")
		u.createdInSomeSession(s.Path(t))
	}
}

// createdInSomeSession creates a node, again in the next session if a session of a second ends before.
func (u *user) createdInSomeSession(directory string) {
	u.t.Helper()
	zktest.Eventually(u.t, zktest.TimeLimit, func() bool {
		u.create(directory, "n-")
		_, is := next[interface{ GetId() uint64 }](u).(*messages.Created)
		return is
	}, "a create")
}

// refusedInLocalSession checks that creates fail, and that reads do not. It reports whether the session has lasted
// until then.
func (u *user) refusedInLocalSession() (lasted bool) {
	u.t.Helper()
	err := u.bridge.NoTokens()
	if err == nil {
		return false
	}
	if !errors.Is(err, messages.Reason_UNAVAILABLE) || !strings.Contains(err.Error(), upgrading) {
		u.t.Errorf("no tokens: %v", err)
	}
	u.create("/new", "n-")
	u.batch(func() {
		u.create("/new", "n-")
		u.create("/other", "n-")
	})
	u.bridge.Ref().SendList(&messages.List{Id: u.id(), Epoch: u.epoch(), Directory: "/"}, u)
	lasted = true
	for i := range 4 {
		switch m := next[interface{ GetId() uint64 }](u).(type) {
		case *messages.Listed:
			if i < 3 {
				u.t.Errorf("a list is answered before creates: %v", m)
			}
		case *messages.Failed:
			if m.GetReason() == messages.Reason_SESSION_LOST {
				lasted = false
			} else if i == 3 || m.GetReason() != messages.Reason_UNAVAILABLE || !strings.Contains(m.GetDetail(), upgrading) {
				u.t.Errorf("alone or among others: %v", m)
			}
		default:
			u.t.Errorf("got %v", m)
		}
	}
	return lasted
}

// A session in which creates fail is tried again, and loses nothing with its connection.
func TestLocalSessionIsTriedAgain(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := zktest.Virtual(t)
		var d testDialer
		d.dial = s.Dial
		u := newUser(t, connected(t, Config{Servers: s.Addr(), Dial: d.Dial, SessionTimeout: 20 * time.Second}))
		u.created("/d", "n-")
		var faults []*embedded.Injected
		refuse := func(op embedded.Op, path string, code int32) {
			faults = append(faults, s.Embedded().Inject(embedded.Fault{Op: op, Path: path, Action: embedded.Refuse, Code: code, Times: -1}))
		}
		refuse(embedded.OpCreate, "", -120)
		refuse(embedded.OpCreate2, "", -120)
		refuse(embedded.OpMulti, "/new", -112)
		s.Expire(t, u.bridge.Session().ID)
		time.Sleep(time.Second)
		if !u.refusedInLocalSession() {
			t.Error("the session has ended")
		}
		d.cut()
		time.Sleep(2 * epoch.GenerationPause)
		if !u.refusedInLocalSession() {
			t.Error("the session has ended, or has tokens")
		}
		if n := u.epoch(); n != 2 || u.bridge.Session().State != messages.SessionState_CONNECTED {
			t.Errorf("epoch %d, %v", n, u.bridge.Session())
		}
		for _, f := range faults {
			f.Remove()
		}
		time.Sleep(epoch.GenerationPause)
		u.created("/d", "n-")
		if n := u.epoch(); n != 2 || u.bridge.NoTokens() != nil {
			t.Errorf("epoch %d, no tokens: %v", n, u.bridge.NoTokens())
		}
	})
}
