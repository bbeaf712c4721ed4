package actors_test

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
)

// anyToken draws tokens that are mostly close to each other in all of their parts.
func anyToken(t *rapid.T, name string) actors.Token {
	return actors.Token{
		Generation: rapid.OneOf(rapid.Uint64Range(0, 2), rapid.Uint64(), rapid.Just(uint64(math.MaxUint64))).Draw(t, name+" generation"),
		Czxid:      rapid.OneOf(rapid.Int64Range(0, 2), rapid.Int64Min(0), rapid.Just(int64(math.MaxInt64))).Draw(t, name+" czxid"),
		Step:       rapid.OneOf(rapid.Uint32Range(0, 2), rapid.Uint32(), rapid.Just(uint32(math.MaxUint32))).Draw(t, name+" step"),
	}
}

// Tokens are ordered by generation, czxid and step, and so are their texts. A token is the same
// after it was written and read as a text, a database value or JSON.
func TestTokenTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyToken(t, "a"), anyToken(t, "b")
		want := cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Czxid, b.Czxid), cmp.Compare(a.Step, b.Step))
		if got := a.Compare(b); got != want {
			t.Errorf("%v.Compare(%v) is %d, want %d", a, b, got, want)
		}
		if got := strings.Compare(a.String(), b.String()); got != want || len(a.String()) != 42 {
			t.Errorf("%q and %q compare as %d, want %d", a, b, got, want)
		}
		parsed, err := actors.ParseToken(a.String())
		if err != nil || parsed != a {
			t.Errorf("%q is %v, %v", a.String(), parsed, err)
		}
		stored, err := a.Value()
		var scanned, scannedBytes, decoded actors.Token
		text, _ := stored.(string)
		if err != nil || scanned.Scan(text) != nil || scannedBytes.Scan([]byte(text)) != nil || scanned != a || scannedBytes != a {
			t.Errorf("stored as %v: %v and %v, %v", stored, scanned, scannedBytes, err)
		}
		encoded, err := json.Marshal(a)
		if err != nil || json.Unmarshal(encoded, &decoded) != nil || decoded != a {
			t.Errorf("%s is %v, %v", encoded, decoded, err)
		}
		if got := actors.TokenOf(&messages.Granted{Generation: a.Generation, Czxid: a.Czxid, Step: a.Step}); got != a {
			t.Errorf("the message of %v has %v", a, got)
		}
	})
}

func TestParseToken(t *testing.T) {
	good := actors.Token{Czxid: 0x1f}.String()
	for _, bad := range []string{"", "1", good[:41], good + "0", good[17:], " " + good[1:], strings.ToUpper(good), "-" + good[1:],
		"+" + good[1:], "0x" + good[2:], strings.Replace(good, ".", "-", 1), good[:33] + "-" + good[34:],
		good[:17] + " " + good[18:], good[:34] + " " + good[35:], good + "\n", "g" + good[1:]} {
		token, err := actors.ParseToken(bad)
		is(t, err, actors.ErrInvalid)
		if err == nil {
			t.Errorf("%q is %v", bad, token)
		} else if bad != "" && !strings.Contains(err.Error(), strings.TrimSpace(bad)) {
			t.Errorf("the error does not name %q: %v", bad, err)
		}
	}
}

// ParseToken refuses the texts of tokens without a generation, which older versions wrote.
func TestTokenWithoutAGeneration(t *testing.T) {
	const old = "000000000000001f.00000000"
	_, err := actors.ParseToken(old)
	isClear(t, err, old)
	if err == nil || !strings.Contains(err.Error(), "0000000000000000.000000000000001f.00000000") {
		t.Errorf("the error does not show the form: %v", err)
	}
	var token actors.Token
	for _, stored := range []any{old, []byte(old), nil, 31} {
		if err := token.Scan(stored); err == nil {
			t.Errorf("%v is read as %v", stored, token)
		}
	}
}

// The grants of all recipes have the generation that the bridge reports, for Go code and for
// actors.
func TestTokensHaveTheirGeneration(t *testing.T) {
	t.Parallel()
	generationAt := func(czxid int64) uint64 { return uint64(czxid) + 7 }
	downgrades := map[string][]recipe{"write": named("read"), "local write": named("local read")}
	for _, r := range recipes {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			onEmbedded(t, func(b *testLock) {
				config, all := testActors(t, 1)
				locks := b.locks(config)
				held := append([]recipe{r}, downgrades[r.name]...)
				var grants []*actors.Grant
				for _, r := range held {
					mu := r.at(locks, b.path)
					mu.(interface{ SetGenerations(func(int64) uint64) }).SetGenerations(generationAt)
					g := lock(b, mu, append(r.options, actors.WithOwner("me"))...)
					checkGeneration(b, g.Token(), generationAt)
					grants = append(grants, g)
				}
				for _, g := range grants {
					unlock(b, g)
				}
				checkGenerationByMessages(b, all[0], locks, held, generationAt)
				must(b, locks.Close())
			})
		})
	}
}

// checkGenerationByMessages checks the generation of grants that an actor gets.
func checkGenerationByMessages(b *testLock, p *testActor, locks *actors.Locks, held []recipe, generationAt func(int64) uint64) {
	b.Helper()
	for i, r := range held {
		p.send(pid(b, r.at(locks, b.path)), &messages.Acquire{RequestId: uint64(i), Owner: "me", Kind: uint32(r.kind), Permits: r.permits})
		granted := p.granted(uint64(i))
		for _, part := range append(granted.GetParts(), granted) {
			checkGeneration(b, actors.TokenOf(part), generationAt)
		}
	}
	for i, r := range held {
		p.send(pid(b, r.at(locks, b.path)), &messages.Release{RequestId: uint64(i), Owner: "me"})
		p.released(uint64(i), 0)
	}
}

func checkGeneration(b *testLock, token actors.Token, generationAt func(int64) uint64) {
	b.Helper()
	if token.Czxid == 0 || token.Generation != generationAt(token.Czxid) {
		b.Errorf("token %v: generation %d, want %d", token, token.Generation, generationAt(token.Czxid))
	}
}
