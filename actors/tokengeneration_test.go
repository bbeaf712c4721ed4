package actors_test

import (
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
)

// The grants of all recipes have the generation that the bridge reports, for Go code and for
// actors.
func TestTokensHaveTheirGeneration(t *testing.T) {
	t.Parallel()
	generationAt := func(czxid int64) uint64 { return uint64(czxid) + 7 }
	downgrades := map[string][]locktest.Recipe{"write": locktest.Named("read"), "local write": locktest.Named("local read")}
	for _, r := range locktest.Recipes {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			locktest.OnEmbedded(t, func(b *locktest.Fixture) {
				config, all := locktest.OwnerActors(t, 1)
				locks := b.Locks(config)
				held := append([]locktest.Recipe{r}, downgrades[r.Name]...)
				var grants []*actors.Grant
				for _, r := range held {
					mu := r.At(locks, b.LockPath)
					mu.(interface{ SetGenerations(func(int64) uint64) }).SetGenerations(generationAt)
					g := locktest.Lock(b, mu, append(r.Options, actors.WithOwner("me"))...)
					checkGeneration(b, g.Token(), generationAt)
					grants = append(grants, g)
				}
				for _, g := range grants {
					locktest.Unlock(b, g)
				}
				checkGenerationByMessages(b, all[0], locks, held, generationAt)
				locktest.Must(b, locks.Close())
			})
		})
	}
}

// checkGenerationByMessages checks the generation of grants that an actor gets.
func checkGenerationByMessages(b *locktest.Fixture, p *locktest.OwnerActor, locks *actors.Locks, held []locktest.Recipe, generationAt func(int64) uint64) {
	b.Helper()
	for i, r := range held {
		p.Send(locktest.PID(b, r.At(locks, b.LockPath)), &messages.Acquire{RequestId: uint64(i), Owner: "me", Kind: uint32(r.Kind), Permits: r.Permits})
		granted := p.Granted(uint64(i))
		for _, part := range append(granted.GetParts(), granted) {
			checkGeneration(b, actors.TokenOf(part), generationAt)
		}
	}
	for i, r := range held {
		p.Send(locktest.PID(b, r.At(locks, b.LockPath)), &messages.Release{RequestId: uint64(i), Owner: "me"})
		p.Released(uint64(i), 0)
	}
}

func checkGeneration(b *locktest.Fixture, token actors.Token, generationAt func(int64) uint64) {
	b.Helper()
	if token.Czxid == 0 || token.Generation != generationAt(token.Czxid) {
		b.Errorf("token %v: generation %d, want %d", token, token.Generation, generationAt(token.Czxid))
	}
}
