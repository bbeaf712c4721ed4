package zkbridge

import (
	"slices"
	"strconv"
	"testing"

	"github.com/go-zookeeper/zk"
	"pgregory.net/rapid"
)

// ensembleModel is an ensemble with the generation's node. It is a value: a copy is a backup.
type ensembleModel struct {
	zxid    int64
	value   uint64 // of the node
	stat    zk.Stat
	exists  bool
	raises  int    // by processes, since the last restore
	restore int    // how many there were
	known   uint64 // the greatest generation of those processes that have read the node since the last restore
}

func (e *ensembleModel) write(value uint64) {
	e.zxid++
	if !e.exists {
		e.stat, e.exists = zk.Stat{Czxid: e.zxid, Version: -1}, true
	}
	e.value, e.stat.Mzxid, e.stat.Version = value, e.zxid, e.stat.Version+1
}

// processModel is a bridge of one process, without the messages between.
type processModel struct {
	g       generationHistory
	session bool
	zxid    int64 // the newest that the session has seen
	first   int64
	token   [2]uint64 // of its last grant: generation and czxid
}

// read reads the node, and raises it if the history says so: a fleet's clocks are beyond all generations. changed
// is called for each write, as the watches of the other processes are.
func (p *processModel) read(t *rapid.T, e *ensembleModel, changed func()) {
	for {
		p.g.asking()
		p.g.read([]byte(strconv.FormatUint(e.value, 10)), e.stat, e.exists)
		p.zxid = e.zxid
		if !p.g.mustRaise(p.first) {
			e.known = max(e.known, p.g.present())
			return
		}
		if e.raises++; e.raises > 1 {
			t.Fatalf("raised %d times after restore %d", e.raises, e.restore)
		}
		e.write(max(p.g.formerGeneration+1, p.g.present()+1, uint64(1000*e.restore)))
		changed()
	}
}

// The tokens of a process go up, whatever becomes of the ensemble: transactions of others, raises, restores of any backup, nothing
// among them, and ends of sessions. A fleet raises the generation once after a restore. Once a process has read the node, no
// process has tokens of a lower generation than it has seen, also if it starts then.
func TestTokensNeverGoBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := ensembleModel{zxid: 10}
		backups := []ensembleModel{{}}
		processes := make([]processModel, 3)
		changed := func() {
			for i := range processes {
				processes[i].g.changed() // by the watch, or with the next session
			}
		}
		one := func(t *rapid.T) *processModel { return &processes[rapid.IntRange(0, 2).Draw(t, "process")] }
		end := func(p *processModel) {
			if p.session {
				p.g.sessionOver(p.zxid)
				p.session = false
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"others": func(t *rapid.T) { e.zxid += rapid.Int64Range(1, 50).Draw(t, "transactions") },
			"raise": func(t *rapid.T) {
				e.write(e.value + 1)
				changed()
			},
			"backup": func(*rapid.T) { backups = append(backups, e) },
			"restore": func(t *rapid.T) {
				restores := e.restore + 1
				e = rapid.SampledFrom(backups).Draw(t, "backup")
				e.restore, e.raises, e.known = restores, 0, 0
				for i := range processes {
					end(&processes[i])
				}
			},
			"end":   func(t *rapid.T) { end(one(t)) },
			"start": func(t *rapid.T) { *one(t) = processModel{} },
			"grant": func(t *rapid.T) {
				p := one(t)
				if !p.session {
					e.zxid++
					p.session, p.first, p.zxid = true, e.zxid, e.zxid
					if rapid.IntRange(0, 3).Draw(t, "no session node") == 0 {
						p.first = 1 << 62 // nothing is known before the first contender
					}
					p.g.changed()
				}
				if p.g.unread() {
					p.read(t, &e, changed)
				}
				for {
					e.zxid++
					czxid := e.zxid
					p.zxid = czxid
					generation, known := p.g.at(czxid)
					if known {
						token := [2]uint64{generation, uint64(czxid)}
						if slices.Compare(token[:], p.token[:]) <= 0 {
							t.Fatalf("token %v after %v", token, p.token)
						}
						if generation < e.known {
							t.Fatalf("generation %d, and another process has seen %d", generation, e.known)
						}
						p.token = token
						return
					}
					if !p.g.mustRaise(czxid) {
						t.Fatalf("no generation at %d: %+v", czxid, p.g)
					}
					p.first = czxid
					p.g.changed()
					p.read(t, &e, changed)
				}
			},
		})
	})
}
