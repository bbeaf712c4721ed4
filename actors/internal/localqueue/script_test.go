package localqueue

import (
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/invariants"
	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The scripts are like those of lockqueue. A step has the number of the node hold and the number of the
// grant: 0/2.
func TestScripts(t *testing.T) {
	machinetest.RunScripts(t, "testdata/*.txt", func() machinetest.Stepper { return &script{New(&machinetest.LocalRecorder{}, queue.Mutex(), 3)} })
}

var kinds = []string{"exclusive", "shared"}

type script struct{ *Queue }

func (s *script) Step(t *testing.T, line string) []string {
	word, args, num := machinetest.Parse(t, line)
	id, serial, why := requests.ID(num("id", 0)), uint64(num("serial", 0)), machinetest.Reason(t, args["reason"], requests.SessionLost)
	_, try := args["try"]
	_, tell := args["notify"]
	var e queueCall
	switch word {
	case "rule":
		s.rule = map[string]queue.Rule{"mutex": queue.Mutex(), "readwrite": queue.ReadWrite(), "simple": queue.SimpleReadWrite()}[args["name"]]
		return nil
	case "grants-made": // as if so many grants had been made
		s.hold.grants = uint32(num("times", 0))
		return nil
	case "acquire":
		r := requests.Incoming{ID: id, Owner: args["owner"], Kind: machinetest.Kind(t, args["kind"], kinds), Try: try, NotifyContended: tell, Data: []byte(args["data"])}
		e = func(l *Queue) { l.Acquire(r) }
	case "cancel":
		e = func(l *Queue) { l.Cancel(id, requests.Cancelled) }
	case "release":
		e = func(l *Queue) { l.Release(id) }
	case "node-granted":
		e = func(l *Queue) { l.NodeGranted(serial, 0, num("czxid", 100+int64(serial)), uint32(num("step", 0))) }
	case "node-refused":
		e = func(l *Queue) { l.NodeRefused(serial, why) }
	case "node-lost":
		e = func(l *Queue) { l.NodeLost(serial, why) }
	case "node-contended":
		e = func(l *Queue) { l.NodeContended(serial) }
	case "time-budget-used":
		e = func(l *Queue) { l.TimeBudgetUsed(serial) }
	case "idle-timed-out":
		e = (*Queue).IdleTimedOut
	default:
		t.Fatalf("unknown event %q", line)
	}
	var effects []string
	for _, f := range step(s.Queue, e) {
		effects = append(effects, show(f))
	}
	return effects
}

func show(f machinetest.LocalEffect) string {
	switch f.Kind {
	case "AcquireNode":
		return fmt.Sprintf("acquire-node serial=%d kind=%s try=%t data=%q", f.Serial, kinds[f.NodeKind], f.Try, f.Data)
	case "ReleaseNode":
		return fmt.Sprintf("release-node serial=%d", f.Serial)
	case "StartIdleTimer":
		return "start-idle-timer"
	case "Grant":
		return fmt.Sprintf("grant id=%d by=%d token=%d.%d/%d", f.ID, f.Serial, f.Czxid, f.Step>>stepBits, f.Step&mostGrants)
	}
	return machinetest.ShowAnswer(f, f.ID, f.Reason, f.StillHeld)
}

// queueCall is a call of a Queue.
type queueCall func(*Queue)

// step applies an event to a Queue with a recorder, and returns the effects.
func step(l *Queue, e queueCall) []machinetest.LocalEffect {
	e(l)
	invariants.Check(l)
	return l.actor.(*machinetest.LocalRecorder).Take()
}
