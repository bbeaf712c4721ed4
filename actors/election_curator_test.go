package actors_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
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
			onOneServer(t, func(b *testLock) {
				curator, locks := b.curator(), b.locks()
				theirs, observer := java.join(curator, b.path, "java"), java.join(curator, b.path, "observer")
				e := locks.Election(b.path, append(java.options, actors.AsID("go"))...)
				expect := func(want ...string) {
					b.Helper()
					leader, err := e.Leader(within(b))
					if err != nil || string(leader.Data) != want[0] || leader.Mine != (want[0] == "go") {
						b.Errorf("the leader is %s, %v, want %s", leader.Data, err, want[0])
					}
					if id, err := observer.Leader(); err != nil || id != want[0] {
						b.Errorf("Curator's leader is %s, %v, want %s", id, err, want[0])
					}
					all, err := e.Participants(within(b))
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
				if held := <-theirs.Begin(timeLimit); !held.Held {
					b.Fatal(held.Err)
				}
				c := b.campaign(e)
				b.waitNodes(2)
				c.waits()
				expect("java", "go")

				must(b, theirs.Release()) // closes it
				c.leads()
				again := theirs.Begin(timeLimit)
				b.waitNodes(2)
				expect("go", "java")
				select {
				case r := <-again:
					b.Fatalf("Java leads beside us: %v", r)
				default:
				}

				c.resigns()
				if r := <-again; !r.Held {
					b.Fatal(r.Err)
				}
				b.waitNodes(2)
				c.waits()
				expect("java", "go")

				must(b, theirs.Release())
				c.leads()
				again = theirs.Begin(timeLimit)
				b.waitNodes(2)
				b.expire(locks) // as if our process had been killed
				if r := <-again; !r.Held {
					b.Fatal(r.Err)
				}
				b.waitNodes(2)
				c.waits()
				must(b, theirs.Release())
				c.leads()
			})
		})
	}
}

// Leaders of both libraries take turns, and no two lead at one time.
func TestElectionContendsWithCurator(t *testing.T) {
	for _, java := range javaElections {
		t.Run(java.name, func(t *testing.T) {
			onOneServer(t, func(b *testLock) {
				const rounds = 12
				resource, curator := interop.NewResource(b), b.curator()
				var all []<-chan error
				for _, id := range []string{"java", "java too"} {
					all = append(all, java.join(curator, b.path, id).Contend(resource, id, rounds))
				}
				for _, id := range []string{"go", "go too"} {
					e := b.locks().Election(b.path, append(java.options, actors.AsID(id))...)
					done := make(chan error, 1)
					all = append(all, done)
					go func() {
						var token actors.Token
						for term, err := range e.Campaign(within(b)) {
							if err != nil {
								done <- err
								return
							}
							expectIncreasing(b, token, term.Token())
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
			onOneServer(t, func(b *testLock) {
				curator := b.curator(interop.SessionTimeout(8 * time.Second))
				if held := <-java.join(curator, b.path, "java").Begin(timeLimit); !held.Held {
					b.Fatal(held.Err)
				}
				c := b.campaign(b.locks().Election(b.path, java.options...))
				b.waitNodes(2)
				c.waits()
				curator.Kill()
				c.leads()
			})
		})
	}
}

// Curator's Revoker asks our leader to resign.
func TestCuratorRevokesLeader(t *testing.T) {
	onOneServer(t, func(b *testLock) {
		curator, e := b.curator(), b.locks().Election(b.path, actors.ResignOnRevoke())
		c := b.campaign(e)
		term := c.leads()
		must(b, curator.Revoke(term.Grant().Node()))
		closes(b, term.Context().Done(), "the term")
		if next := c.leads(); next.Number() != 2 {
			b.Errorf("term %d", next.Number())
		}
		zktest.Eventually(b, timeLimit, func() bool { return len(b.nodes()) == 1 }, "one node")
	})
}
