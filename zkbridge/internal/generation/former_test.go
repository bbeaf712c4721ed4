package generation

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// ensembleModel is an ensemble with the generation's node. It is a value: a copy is a backup.
type ensembleModel struct {
	zxid    int64
	value   uint64 // of the node
	version int
	raises  int    // by processes, since the last restore
	restore int    // how many there were
	known   uint64 // the greatest generation of those processes that have read the node since the last restore
}

// processModel is a bridge of one process, without the messages between.
type processModel struct {
	former     Former
	session    bool
	away       bool   // the session has no connection
	generation uint64 // of the session
	zxid       int64  // the newest that the session has seen
	token      [2]uint64
}

func (p *processModel) end() {
	if p.session {
		p.former.Add(p.generation, p.zxid)
		p.session, p.away = false, false
	}
}

// The tokens of a process go up, whatever becomes of the ensemble: transactions of others, raises,
// restores of any backup, nothing among them, and ends of sessions. Some sessions live through a
// restore, and go on when the ensemble has passed the zxid that they have seen. A fleet raises the
// generation once after a restore. Once a process has read the node, no process has tokens of a
// lower generation than it has seen, also if it starts then.
func TestTokensNeverGoBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := ensembleModel{zxid: 10}
		backups := []ensembleModel{{}}
		processes := make([]processModel, 3)
		write := func(value uint64) {
			e.zxid++
			e.value, e.version = value, e.version+1
			for i := range processes {
				if !processes[i].away { // the others read it when they are back
					processes[i].end()
				}
			}
		}
		one := func(t *rapid.T) *processModel { return &processes[rapid.IntRange(0, 2).Draw(t, "process")] }
		begin := func(p *processModel) {
			e.zxid++
			first := e.zxid
			if p.former.MustRaise(e.value, first) {
				if e.raises++; e.raises > 1 {
					t.Fatalf("raised %d times after restore %d", e.raises, e.restore)
				}
				write(max(p.former.Generation+1, e.value+1, uint64(1000*e.restore))) // the clocks are beyond all generations
			}
			if p.former.MustRaise(e.value, first) {
				t.Fatalf("%+v is not above %+v", e, p.former)
			}
			p.session, p.generation, p.zxid = true, e.value, e.zxid
			e.known = max(e.known, e.value)
		}
		t.Repeat(map[string]func(*rapid.T){
			"others": func(t *rapid.T) { e.zxid += rapid.Int64Range(1, 50).Draw(t, "transactions") },
			"raise":  func(*rapid.T) { write(e.value + 1) },
			"backup": func(*rapid.T) { backups = append(backups, e) },
			"restore": func(t *rapid.T) {
				restores := e.restore + 1
				e = rapid.SampledFrom(backups).Draw(t, "backup")
				e.restore, e.raises, e.known = restores, 0, 0
				for i := range processes {
					if p := &processes[i]; rapid.Bool().Draw(t, "lives") {
						p.away = p.session
					} else {
						p.end()
					}
				}
			},
			"end":   func(t *rapid.T) { one(t).end() },
			"start": func(t *rapid.T) { *one(t) = processModel{} },
			"grant": func(t *rapid.T) {
				p := one(t)
				if p.away && (e.zxid < p.zxid || e.value != p.generation) { // the server hangs up, or the bridge ends the session
					p.end()
				}
				if !p.session {
					begin(p)
				}
				e.zxid++
				p.away, p.zxid = false, e.zxid
				token := [2]uint64{p.generation, uint64(e.zxid)}
				if slices.Compare(token[:], p.token[:]) <= 0 {
					t.Fatalf("token %v after %v", token, p.token)
				}
				if p.generation < e.known {
					t.Fatalf("generation %d, and another process has seen %d", p.generation, e.known)
				}
				p.token = token
			},
		})
	})
}
