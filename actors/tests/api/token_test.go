package api

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
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
		locktest.Is(t, err, actors.ErrInvalid)
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
	locktest.ExpectClear(t, err, old)
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
