package localqueue

import (
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The scripts are like those of lockqueue. The step of a token has two numbers: that of the node
// hold and that of the grant, such as 0/2.
func TestScripts(t *testing.T) {
	machinetest.RunScripts(t, func() machinetest.Stepper { return &queueScript{New(&machinetest.LocalRecorder{}, queue.Mutex(), 3)} })
}

var kinds = []string{"exclusive", "shared"}

type queueScript struct{ *Queue }

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
	for _, f := range step(s.Queue, parse(line)) {
		effects = append(effects, show(f))
	}
	return effects
}

func parse(line machinetest.Line) queueEvent {
	id, serial, why := line.ID(), line.Serial(), line.Reason(requests.SessionLost)
	switch line.Word {
	case "acquire":
		r := line.Request(kinds)
		return func(l *Queue) { l.Acquire(r) }
	case "cancel":
		return func(l *Queue) { l.Cancel(id, requests.Cancelled) }
	case "release":
		return func(l *Queue) { l.Release(id) }
	case "node-granted":
		token := requests.Token{Czxid: line.Number("czxid", 100+int64(serial)), Step: uint32(line.Number("step", 0))}
		return func(l *Queue) { l.NodeGranted(serial, token) }
	case "node-refused":
		return func(l *Queue) { l.NodeRefused(serial, why) }
	case "node-lost":
		return func(l *Queue) { l.NodeLost(serial, why) }
	case "node-contended":
		return func(l *Queue) { l.NodeContended(serial) }
	case "node-revoked":
		return func(l *Queue) { l.NodeRevoked(serial) }
	case "time-budget-used":
		return func(l *Queue) { l.TimeBudgetUsed(serial) }
	case "idle-timed-out":
		return (*Queue).IdleTimedOut
	}
	line.Unknown()
	return nil
}

func show(f machinetest.Effect) string {
	switch f.Kind {
	case "AcquireNode":
		return fmt.Sprintf("acquire-node serial=%d kind=%s try=%t data=%q", f.Serial, kinds[f.NodeKind], f.Try, f.Data)
	case "ReleaseNode":
		return fmt.Sprintf("release-node serial=%d", f.Serial)
	case "StartIdleTimer":
		return "start-idle-timer"
	case "Grant":
		return fmt.Sprintf("grant id=%d by=%d token=%d.%d/%d", f.ID, f.Serial, f.Token.Czxid, f.Token.Step>>stepBits, f.Token.Step&mostGrants)
	}
	return f.Show()
}

// queueEvent is a call of a Queue.
type queueEvent func(*Queue)

// step applies an event to a Queue with a LocalRecorder, and returns the effects.
func step(l *Queue, e queueEvent) []machinetest.Effect {
	e(l)
	invariants.Check(l)
	return l.actor.(*machinetest.LocalRecorder).Take()
}
