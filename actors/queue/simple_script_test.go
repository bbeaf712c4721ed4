package queue

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// The scripts in testdata/simple are like the others. A mark of ours is written mine-1.
func TestSimpleScripts(t *testing.T) {
	runScripts(t, "testdata/simple/*.txt", func() stepper { return &simpleScript{NewSimple("lock", false, Incarnation{})} })
}

type simpleScript struct{ *Simple }

func (s *simpleScript) step(t *testing.T, line string) []string {
	word, args, num := parse(t, line)
	id, epoch, serial := ID(num("id", 0)), uint64(num("epoch", 1)), uint64(num("serial", 0))
	_, try := args["try"]
	_, tell := args["tell"]
	_, kept := args["kept"]
	var e SimpleEvent
	switch word {
	case "readwrite":
		s.Simple = NewSimple("W", true, Incarnation{})
		return nil
	case "acquire":
		e = Acquire{ID: id, Kind: Kind(num("kind", 0)), Try: try, Tell: tell, Data: []byte(args["data"])}
	case "done":
		e = Transacted{Serial: serial, Done: true, Czxid: num("czxid", 100+int64(serial)), Why: Why(num("why", 0))}
	case "missing":
		e = Transacted{Serial: serial, Op: uint32(num("op", 0)), Missing: true}
	case "exists":
		e = Transacted{Serial: serial}
	case "listed":
		e = Listed{Epoch: epoch, Serial: serial, Children: s.long(args["children"])}
	case "watched":
		gate := strings.Join(s.long(args["gate"]), "")
		w := Watched{Epoch: epoch, Serial: serial, Gone: s.long(args["gone"]), Data: map[string][]byte{s.gate: []byte(gate)}}
		if gate != "" {
			w.Czxids = map[string]int64{s.gate: num("czxid", 1)}
			if gate == s.mark {
				w.Czxids[s.gate] = num("czxid", s.czxid)
			}
		}
		e = w
	case "wake":
		node := strings.Join(s.long(args["node"]), "")
		e = Wake{Epoch: epoch, Node: node, Deleted: !kept}
	default:
		e = commonEvent(t, line, Unknown)
	}
	var effects []string
	for _, f := range trySimple(s.Simple, e) {
		effects = append(effects, s.show(f))
	}
	return effects
}

func (s *simpleScript) long(list string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(list, "mine", hex.EncodeToString(s.in[:])), func(r rune) bool { return r == ',' })
}

func (s *simpleScript) show(f Effect) string {
	short := func(name string) string { return strings.ReplaceAll(name, hex.EncodeToString(s.in[:]), "mine") }
	switch f.Do {
	case DoTake:
		return fmt.Sprintf("take serial=%d gate=%s mark=%s data=%q", f.Serial, f.Beside, short(f.Node), f.Data)
	case DoProve:
		return fmt.Sprintf("prove serial=%d mark=%s data=%q", f.Serial, short(f.Node), f.Data)
	case DoLeave:
		return fmt.Sprintf("leave serial=%d gate=%s mark=%s", f.Serial, f.Beside, short(f.Node))
	}
	return short((&script{NewState(Mutex(), Incarnation{})}).show(f))
}

// trySimple is TrySimple for an event of any type.
func trySimple(s *Simple, e SimpleEvent) []Effect { return TrySimple(s, e) }
