package simplelock

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// The scripts are like those of lockqueue. The name of an own owner node is written lock-mine-1:
// mine stands for the unique part, 1 is the serial.
func TestScripts(t *testing.T) {
	machinetest.RunScripts(t, "testdata/*.txt", func() machinetest.Stepper { return &contenderScript{New(&recorder{}, "lock", false, [8]byte{})} })
}

type contenderScript struct{ *Contender }

func (s *contenderScript) Step(t *testing.T, line string) []string {
	word, args, num := machinetest.Parse(t, line)
	id, epoch, serial := requests.ID(num("id", 0)), uint64(num("epoch", 1)), uint64(num("serial", 0))
	_, try := args["try"]
	_, tell := args["notify"]
	var e event
	switch word {
	case "readwrite":
		s.Contender = New(&recorder{}, "W", true, [8]byte{})
		return nil
	case "acquire":
		r := requests.Incoming{ID: id, Kind: machinetest.Kind(t, args["kind"], []string{"exclusive", "shared"}), Try: try, NotifyContended: tell, Data: []byte(args["data"])}
		e = func(s *Contender) { s.Acquire(r) }
	case "done":
		e = transacted(serial, Transaction{Done: true, Czxid: num("czxid", 100+int64(serial)), Reason: machinetest.Reason(t, args["reason"], 0)})
	case "missing":
		e = transacted(serial, Transaction{Missing: true})
	case "exists":
		e = transacted(serial, Transaction{})
	case "listed":
		e = func(c *Contender) { c.Listed(serial, s.long(args["children"])) }
	case "watched":
		lock := strings.Join(s.long(args["lock-node"]), "")
		w := NodesRead{Gone: s.long(args["gone"]), Data: map[string][]byte{s.lockNode: []byte(lock)}}
		if lock != "" {
			w.Czxids = map[string]int64{s.lockNode: num("czxid", 1)}
			if lock == s.ownerNode {
				w.Czxids[s.lockNode] = num("czxid", s.czxid)
			}
		}
		e = func(s *Contender) { s.Watched(serial, w) }
	case "wake":
		node := strings.Join(s.long(args["node"]), "")
		e = func(s *Contender) { s.Wake(epoch, node) }
	default:
		e = parseOthers(t, line)
	}
	var effects []string
	for _, f := range step(s.Contender, e) {
		effects = append(effects, s.show(f))
	}
	return effects
}

// parseOthers reads the events without names of nodes.
func parseOthers(t *testing.T, line string) event {
	word, args, num := machinetest.Parse(t, line)
	id, epoch, serial := requests.ID(num("id", 0)), uint64(num("epoch", 1)), uint64(num("serial", 0))
	switch word {
	case "cancel":
		return func(s *Contender) { s.Cancel(id, requests.Cancelled) }
	case "release":
		return func(s *Contender) { s.Release(id) }
	case "failed":
		why := machinetest.Reason(t, args["reason"], requests.OutcomeUnknown)
		return func(s *Contender) { s.Failed(serial, why) }
	case "connected", "suspended":
		return func(s *Contender) { s.Session(epoch, true) }
	case "lost":
		return func(s *Contender) { s.Session(epoch, false) }
	case "tick":
		return (*Contender).Tick
	case "close":
		return func(s *Contender) { s.Close(requests.Closed) }
	}
	t.Fatalf("unknown event %q", line)
	return nil
}

// showOthers shows the effects that are like those of other machines.
func showOthers(f effect) string {
	switch f.kind {
	case "ListDirectory":
		return fmt.Sprintf("list serial=%d%s", f.serial, machinetest.When(f.watch, " watch"))
	case "WatchNodes":
		return fmt.Sprintf("watch serial=%d nodes=%s", f.serial, strings.Join(f.nodes, ","))
	case "DeleteNodes":
		return fmt.Sprintf("delete-nodes serial=%d nodes=%s", f.serial, strings.Join(f.nodes, ","))
	case "Grant":
		return fmt.Sprintf("grant id=%d node=%s token=%d.0", f.id, f.ownerNode, f.czxid)
	}
	return machinetest.ShowAnswer(f, f.id, f.reason, 0)
}

func (s *contenderScript) long(list string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(list, "mine", hex.EncodeToString(s.unique[:])), func(r rune) bool { return r == ',' })
}

func (s *contenderScript) show(f effect) string {
	short := func(name string) string { return strings.ReplaceAll(name, hex.EncodeToString(s.unique[:]), "mine") }
	switch f.kind {
	case "CreateNodes":
		return fmt.Sprintf("create-nodes serial=%d lock-node=%s owner-node=%s data=%q", f.serial, f.lockNode, short(f.ownerNode), f.data)
	}
	return short(showOthers(f))
}

func transacted(serial uint64, t Transaction) event {
	return func(s *Contender) { s.Transacted(serial, t) }
}
