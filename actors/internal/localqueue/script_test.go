package localqueue

import (
	"fmt"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// The scripts are like those of lockqueue. A step is written as that of the node hold and the number
// of the grant: 0/2.
func TestScripts(t *testing.T) {
	machinetest.RunScripts(t, "testdata/*.txt", func() machinetest.Stepper { return &script{New(queue.Mutex(), 3)} })
}

var kinds = []string{"exclusive", "shared"}

type script struct{ *Queue }

func (s *script) Step(t *testing.T, line string) []string {
	word, args, num := machinetest.Parse(t, line)
	id, serial, why := requests.ID(num("id", 0)), uint64(num("serial", 0)), machinetest.Reason(t, args["reason"], requests.SessionLost)
	_, try := args["try"]
	_, tell := args["notify"]
	var e Event
	switch word {
	case "rule":
		s.rule = map[string]queue.Rule{"mutex": queue.Mutex(), "readwrite": queue.ReadWrite(), "simple": queue.SimpleReadWrite()}[args["name"]]
		return nil
	case "grants-made": // as if so many grants had been made
		s.hold.grants = uint32(num("times", 0))
		return nil
	case "acquire":
		e = Acquire{ID: id, Owner: args["owner"], Kind: machinetest.Kind(t, args["kind"], kinds), Try: try, NotifyContended: tell, Data: []byte(args["data"])}
	case "cancel":
		e = Cancel{ID: id, Reason: requests.Cancelled}
	case "release":
		e = Release{ID: id}
	case "node-granted":
		e = NodeGranted{Serial: serial, Czxid: num("czxid", 100+int64(serial)), Step: uint32(num("step", 0))}
	case "node-refused":
		e = NodeRefused{Serial: serial, Reason: why}
	case "node-lost":
		e = NodeLost{Serial: serial, Reason: why}
	case "node-contended":
		e = NodeContended{Serial: serial}
	case "time-budget-used":
		e = TimeBudgetUsed{Serial: serial}
	case "idle-timed-out":
		e = IdleTimedOut{}
	case "close":
		e = Close{Reason: requests.Closed}
	default:
		t.Fatalf("unknown event %q", line)
	}
	var effects []string
	for _, f := range step(s.Queue, e) {
		effects = append(effects, show(f))
	}
	return effects
}

func show(f Effect) string {
	switch f.Kind {
	case AcquireNode:
		return fmt.Sprintf("acquire-node serial=%d kind=%s try=%t data=%q", f.Serial, kinds[f.NodeKind], f.Try, f.Data)
	case ReleaseNode:
		return fmt.Sprintf("release-node serial=%d", f.Serial)
	case StartIdleTimer:
		return "start-idle-timer"
	case Grant:
		return fmt.Sprintf("grant id=%d by=%d token=%d.%d/%d", f.ID, f.Serial, f.Czxid, f.Step>>stepBits, f.Step&mostGrants)
	}
	return machinetest.ShowAnswer(f.Kind, f.ID, f.Reason, f.StillHeld)
}

// step is Step for an event of any type.
func step(l *Queue, e Event) []Effect { return Step(l, e) }
