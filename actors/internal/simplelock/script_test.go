package simplelock

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// The scripts are like those of lockqueue. An owner node of this process is called lock-mine-1: mine stands for the unique
// part of the name, and 1 is the serial.
func TestScripts(t *testing.T) {
	machinetest.RunScripts(t, func() machinetest.Stepper { return &contenderScript{New(&recorder{}, "lock", false, [8]byte{})} })
}

type contenderScript struct{ *Contender }

func (s *contenderScript) Step(line machinetest.Line) []string {
	if line.Word == "readwrite" {
		s.Contender = New(&recorder{}, "W", true, [8]byte{})
		return nil
	}
	var effects []string
	for _, f := range step(s.Contender, s.event(line)) {
		effects = append(effects, strings.ReplaceAll(show(f), hex.EncodeToString(s.unique[:]), "mine"))
	}
	return effects
}

func (s *contenderScript) event(line machinetest.Line) contenderEvent {
	id, epoch, serial := line.ID(), line.Epoch(), line.Serial()
	switch line.Word {
	case "acquire":
		r := line.Request([]string{"exclusive", "shared"})
		return func(s *Contender) { s.Acquire(r) }
	case "cancel":
		return cancelled(id)
	case "release":
		return func(s *Contender) { s.Release(id) }
	case "done":
		return transacted(serial, Transaction{Done: true, Czxid: line.Number("czxid", 100+int64(serial)), Reason: line.Reason(0)})
	case "missing":
		return transacted(serial, Transaction{Missing: true})
	case "exists":
		return transacted(serial, Transaction{})
	case "listed":
		children := s.names(line, "children")
		return func(s *Contender) { s.Listed(serial, children) }
	case "watched":
		read := s.nodesRead(line)
		return func(s *Contender) { s.Watched(serial, read) }
	case "wake":
		node := strings.Join(s.names(line, "node"), "")
		return func(s *Contender) { s.Wake(epoch, node) }
	case "failed":
		return failed(serial, line.Reason(requests.OutcomeUnknown))
	case "connected", "suspended":
		return func(s *Contender) { s.Session(epoch, true) }
	case "lost":
		return func(s *Contender) { s.Session(epoch, false) }
	case "tick":
		return (*Contender).Tick
	case "close":
		return func(s *Contender) { s.Close(requests.Closed) }
	}
	line.Unknown()
	return nil
}

// nodesRead returns what was read of the lock node. Its data are the owner node in the argument lock-node.
func (s *contenderScript) nodesRead(line machinetest.Line) NodesRead {
	ownerNode := strings.Join(s.names(line, "lock-node"), "")
	read := NodesRead{Gone: s.names(line, "gone"), Data: map[string][]byte{s.lockNode: []byte(ownerNode)}}
	switch ownerNode {
	case "":
	case s.ownerNode:
		read.Czxids = map[string]int64{s.lockNode: line.Number("czxid", s.czxid)}
	default:
		read.Czxids = map[string]int64{s.lockNode: line.Number("czxid", 1)}
	}
	return read
}

// names returns the names of the nodes in an argument.
func (s *contenderScript) names(line machinetest.Line, key string) []string {
	var names []string
	for _, name := range line.List(key) {
		names = append(names, strings.ReplaceAll(name, "mine", hex.EncodeToString(s.unique[:])))
	}
	return names
}

func show(f machinetest.Effect) string {
	switch f.Kind {
	case "CreateNodes":
		return fmt.Sprintf("create-nodes serial=%d lock-node=%s owner-node=%s data=%q", f.Serial, f.LockNode, f.OwnerNode, f.Data)
	case "DeleteNodes":
		return fmt.Sprintf("delete-nodes serial=%d nodes=%s", f.Serial, strings.Join(f.Nodes, ","))
	case "ListDirectory":
		return fmt.Sprintf("list serial=%d%s", f.Serial, machinetest.When(f.Watch, " watch"))
	case "WatchNodes":
		return fmt.Sprintf("watch serial=%d nodes=%s", f.Serial, strings.Join(f.Nodes, ","))
	case "Grant":
		return fmt.Sprintf("grant id=%d node=%s token=%d.0", f.ID, f.OwnerNode, f.Czxid)
	}
	return f.Show()
}
