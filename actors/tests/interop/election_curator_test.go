package interop

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/zkbridge/zktest"
	"github.com/actorlock/actorlock/zkbridge/zktest/interop"
)

// javaElections are Curator's elections, and the options with which ours share their paths.
var javaElections = []struct {
	name    string
	join    func(c *interop.CuratorClient, path, id string) *interop.Lock
	options []actors.ElectionOption
}{
	{"selector", (*interop.CuratorClient).LeaderSelector, nil},
	{"latch", (*interop.CuratorClient).LeaderLatch, []actors.ElectionOption{actors.LeaderLatchNodes()}},
}

// Curator's LeaderSelector, or LeaderLatch, leads while our candidate waits, and waits while our
// candidate leads. Each library returns the ids of both.
func TestElectionBesideCurator(t *testing.T) {
	for _, java := range javaElections {
		t.Run(java.name, func(t *testing.T) {
			locktest.OnOneServer(t, func(b *locktest.Fixture) {
				curator, locks := curator(b), b.Locks()
				theirs, observer := java.join(curator, b.LockPath, "java"), java.join(curator, b.LockPath, "observer")
				e := locks.Election(b.LockPath, append(java.options, actors.AsID("go"))...)
				expect := func(want ...string) {
					b.Helper()
					leader, err := e.Leader(locktest.Within(b))
					if err != nil || string(leader.Data) != want[0] || leader.Local != (want[0] == "go") {
						b.Errorf("the leader is %s, %v, want %s", leader.Data, err, want[0])
					}
					if id, err := observer.Leader(); err != nil || id != want[0] {
						b.Errorf("Curator's leader is %s, %v, want %s", id, err, want[0])
					}
					all, err := e.Participants(locktest.Within(b))
					var ids []string
					for _, p := range all {
						ids = append(ids, string(p.Data))
					}
					if err != nil || !slices.Equal(ids, want) {
						b.Errorf("participants %v, %v, want %v", ids, err, want)
					}
					if ids, err := observer.Participants(); err != nil || !slices.Equal(ids, want) {
						b.Errorf("Curator's participants are %v, %v, want %v", ids, err, want)
					}
				}
				if id, err := observer.Leader(); id != "" || err != nil {
					b.Errorf("without a leader Curator's leader is %q, %v", id, err)
				}
				if held := <-theirs.Begin(zktest.TimeLimit); !held.Held {
					b.Fatal(held.Err)
				}
				c := b.Campaign(e)
				b.WaitNodes(2)
				c.Waits()
				expect("java", "go")

				locktest.Must(b, theirs.Release()) // closes it
				c.Leads()
				again := theirs.Begin(zktest.TimeLimit)
				b.WaitNodes(2)
				expect("go", "java")
				select {
				case r := <-again:
					b.Fatalf("Java leads beside us: %v", r)
				default:
				}

				c.Resigns()
				if r := <-again; !r.Held {
					b.Fatal(r.Err)
				}
				b.WaitNodes(2)
				c.Waits()
				expect("java", "go")

				locktest.Must(b, theirs.Release())
				c.Leads()
				again = theirs.Begin(zktest.TimeLimit)
				b.WaitNodes(2)
				b.ExpireSession(locks) // as if our process had been killed
				if r := <-again; !r.Held {
					b.Fatal(r.Err)
				}
				b.WaitNodes(2)
				c.Waits()
				locktest.Must(b, theirs.Release())
				c.Leads()
			})
		})
	}
}

// Leaders of both libraries take turns, and no two lead at one time.
func TestElectionContendsWithCurator(t *testing.T) {
	for _, java := range javaElections {
		t.Run(java.name, func(t *testing.T) {
			locktest.OnOneServer(t, func(b *locktest.Fixture) {
				const rounds = 12
				resource, curator := interop.NewResource(b), curator(b)
				var all []<-chan error
				for _, id := range []string{"java", "java too"} {
					all = append(all, java.join(curator, b.LockPath, id).Contend(resource, id, rounds))
				}
				for _, id := range []string{"go", "go too"} {
					e := b.Locks().Election(b.LockPath, append(java.options, actors.AsID(id))...)
					done := make(chan error, 1)
					all = append(all, done)
					go func() {
						var token actors.Token
						for term, err := range e.Campaign(locktest.Within(b)) {
							if err != nil {
								done <- err
								return
							}
							locktest.ExpectIncreasing(b, token, term.Token())
							token = term.Token()
							resource.Enter(id, interop.Exclusive, term.Grant().Node())()
							if term.Number() == rounds {
								break
							}
						}
						done <- nil
					}()
				}
				var errs []error
				for _, done := range all {
					errs = append(errs, <-done)
				}
				if err := errors.Join(append(errs, resource.Verify(0))...); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// A Java process is killed while it leads.
func TestJavaLeaderDies(t *testing.T) {
	t.Parallel()
	for _, java := range javaElections {
		t.Run(java.name, func(t *testing.T) {
			locktest.OnOneServer(t, func(b *locktest.Fixture) {
				curator := curator(b, interop.SessionTimeout(8*time.Second))
				if held := <-java.join(curator, b.LockPath, "java").Begin(zktest.TimeLimit); !held.Held {
					b.Fatal(held.Err)
				}
				c := b.Campaign(b.Locks().Election(b.LockPath, java.options...))
				b.WaitNodes(2)
				c.Waits()
				curator.Kill()
				c.Leads()
			})
		})
	}
}

// Curator's Revoker asks our leader to resign.
func TestCuratorRevokesLeader(t *testing.T) {
	locktest.OnOneServer(t, func(b *locktest.Fixture) {
		curator, e := curator(b), b.Locks().Election(b.LockPath, actors.ResignOnRevoke())
		c := b.Campaign(e)
		term := c.Leads()
		locktest.Must(b, curator.Revoke(term.Grant().Node()))
		locktest.Closes(b, term.Context().Done(), "the term")
		if next := c.Leads(); next.Number() != 2 {
			b.Errorf("term %d", next.Number())
		}
		zktest.Eventually(b, zktest.TimeLimit, func() bool { return len(b.LockNodes()) == 1 }, "one node")
	})
}
