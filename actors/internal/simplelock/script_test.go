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
	machinetest.RunScripts(t, "testdata/*.txt", func() machinetest.Stepper { return &script{New("lock", false, [8]byte{})} })
}

type script struct{ *Contender }

func (s *script) Step(t *testing.T, line string) []string {
	word, args, num := machinetest.Parse(t, line)
	id, epoch, serial := requests.ID(num("id", 0)), uint64(num("epoch", 1)), uint64(num("serial", 0))
	_, try := args["try"]
	_, tell := args["notify"]
	var e Event
	switch word {
	case "readwrite":
		s.Contender = New("W", true, [8]byte{})
		return nil
	case "acquire":
		e = Acquire{ID: id, Kind: machinetest.Kind(t, args["kind"], []string{"exclusive", "shared"}), Try: try, NotifyContended: tell, Data: []byte(args["data"])}
	case "done":
		e = Transacted{Serial: serial, Done: true, Czxid: num("czxid", 100+int64(serial)), Reason: machinetest.Reason(t, args["reason"], 0)}
	case "missing":
		e = Transacted{Serial: serial, Op: uint32(num("op", 0)), Missing: true}
	case "exists":
		e = Transacted{Serial: serial}
	case "listed":
		e = Listed{Serial: serial, Children: s.long(args["children"])}
	case "watched":
		gate := strings.Join(s.long(args["lock-node"]), "")
		w := Watched{Serial: serial, Gone: s.long(args["gone"]), Data: map[string][]byte{s.lockNode: []byte(gate)}}
		if gate != "" {
			w.Czxids = map[string]int64{s.lockNode: num("czxid", 1)}
			if gate == s.ownerNode {
				w.Czxids[s.lockNode] = num("czxid", s.czxid)
			}
		}
		e = w
	case "wake":
		node := strings.Join(s.long(args["node"]), "")
		e = Wake{Epoch: epoch, Node: node}
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
func parseOthers(t *testing.T, line string) Event {
	word, args, num := machinetest.Parse(t, line)
	id, epoch, serial := requests.ID(num("id", 0)), uint64(num("epoch", 1)), uint64(num("serial", 0))
	switch word {
	case "cancel":
		return Cancel{ID: id, Reason: requests.Cancelled}
	case "release":
		return Release{ID: id}
	case "deleted":
		return Deleted{Serial: serial}
	case "failed":
		return Failed{Serial: serial, Reason: machinetest.Reason(t, args["reason"], requests.OutcomeUnknown)}
	case "connected", "suspended":
		return Session{Epoch: epoch, Live: true}
	case "lost":
		return Session{Epoch: epoch}
	case "tick":
		return Tick{}
	case "close":
		return Close{Reason: requests.Closed}
	}
	t.Fatalf("unknown event %q", line)
	return nil
}

// showOthers shows the effects that are like those of other machines.
func showOthers(f Effect) string {
	switch f.Kind {
	case ListDirectory:
		return fmt.Sprintf("list serial=%d%s", f.Serial, machinetest.When(f.Watch, " watch"))
	case WatchNodes:
		return fmt.Sprintf("watch serial=%d nodes=%s", f.Serial, strings.Join(f.Nodes, ","))
	case DeleteLockNode:
		return fmt.Sprintf("delete-lock-node serial=%d node=%s", f.Serial, f.LockNode)
	case Grant:
		return fmt.Sprintf("grant id=%d node=%s token=%d.0", f.ID, f.OwnerNode, f.Czxid)
	}
	return machinetest.ShowAnswer(f.Kind, f.ID, f.Reason, 0)
}

func (s *script) long(list string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(list, "mine", hex.EncodeToString(s.unique[:])), func(r rune) bool { return r == ',' })
}

func (s *script) show(f Effect) string {
	short := func(name string) string { return strings.ReplaceAll(name, hex.EncodeToString(s.unique[:]), "mine") }
	switch f.Kind {
	case CreateNodes:
		return fmt.Sprintf("create-nodes serial=%d lock-node=%s owner-node=%s data=%q", f.Serial, f.LockNode, short(f.OwnerNode), f.Data)
	case WriteOwnerNode:
		return fmt.Sprintf("write-owner-node serial=%d owner-node=%s data=%q", f.Serial, short(f.OwnerNode), f.Data)
	case DeleteNodes:
		return fmt.Sprintf("delete-nodes serial=%d lock-node=%s owner-node=%s", f.Serial, f.LockNode, short(f.OwnerNode))
	}
	return short(showOthers(f))
}

// step is Step for an event of any type.
func step(s *Contender, e Event) []Effect { return Step(s, e) }
