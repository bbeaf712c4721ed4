package localqueue

import (
	"fmt"
	"slices"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The scripts are like those of lockqueue. The step of a token has two numbers: that of the node
// hold and that of the grant, such as 0/2.
func TestScripts(t *testing.T) {
	machinetest.RunScripts(t, func() machinetest.Stepper { return &queueScript{New(queue.Mutex(), 3), map[uint64]requests.ID{}} })
}

var kinds = []string{"exclusive", "shared"}

// queueScript has the IDs of nodes by the numbers in them, which are the serials in scripts.
type queueScript struct {
	*Queue
	ids map[uint64]requests.ID
}

func (s *queueScript) Step(line machinetest.Line) []string {
	switch line.Word {
	case "rule":
		s.rule = map[string]queue.Rule{"mutex": queue.Mutex(), "readwrite": queue.ReadWrite()}[line.Text("name")]
		return nil
	case "grants-made": // as if so many grants had been made
		s.hold.grants = uint32(line.Number("times", 0))
		return nil
	}
	var effects []string
	for _, f := range step(s.Queue, s.parse(line)) {
		s.ids[serial(f.ID)] = f.ID
		if f.Kind != requests.NoteNode {
			effects = append(effects, show(f))
		}
	}
	return effects
}

func serial(id requests.ID) uint64 { return uint64(id >> 32) }

func (s *queueScript) parse(line machinetest.Line) queueEvent {
	id := line.ID()
	news := requests.Effect{ID: s.ids[line.Serial()], Reason: line.Reason(requests.SessionLost)}
	switch line.Word {
	case "acquire":
		r := line.Request(kinds)
		return func(l *Queue) { l.Acquire(r) }
	case "cancel":
		return func(l *Queue) { l.Cancel(id, requests.Cancelled) }
	case "release":
		return func(l *Queue) { l.Release(id) }
	case "node-granted":
		news.Token = requests.Token{Czxid: line.Number("czxid", 100+int64(line.Serial())), Step: uint32(line.Number("step", 0))}
	case "node-refused":
		news.Kind = requests.Refuse
	case "node-lost":
		news.Kind = requests.Lose
	case "node-contended":
		news.Kind = requests.NotifyContended
	case "node-revoked":
		news.Kind = requests.RequestRevoke
	case "time-budget-used":
		return func(l *Queue) { l.TimeBudgetUsed(news.ID) }
	case "idle-timed-out":
		return (*Queue).IdleTimedOut
	default:
		line.Unknown()
	}
	return func(l *Queue) { l.Answered(news) }
}

func show(f requests.Effect) string {
	switch f.Kind {
	case requests.Acquire:
		return fmt.Sprintf("acquire-node serial=%d kind=%s try=%t data=%q", serial(f.ID), kinds[f.Request.Kind], f.Request.Try, f.Request.Data)
	case requests.Cancel:
		return fmt.Sprintf("release-node serial=%d", serial(f.ID))
	case requests.StartIdleTimer:
		return "start-idle-timer"
	case requests.Grant:
		return fmt.Sprintf("grant id=%d by=%d token=%d.%d/%d", f.ID, serial(f.By), f.Token.Czxid, f.Token.Step>>StepBits, f.Token.Step&mostGrants)
	}
	return machinetest.ShowAnswer(f)
}

// queueEvent is a call of a Queue.
type queueEvent func(*Queue)

// step applies an event to a Queue, and returns the effects.
func step(l *Queue, e queueEvent) []requests.Effect {
	e(l)
	invariants.Check(l)
	return slices.Clone(l.Effects())
}
