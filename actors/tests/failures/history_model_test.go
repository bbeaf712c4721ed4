package failures

import (
	"fmt"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/actorlock/actorlock/actors"
)

// modelState is the state of the model.
type modelState struct {
	held     actors.Token // of the writer; zero: no writer
	readers  int          // that hold, without those whose grants end by loss
	writer   actors.Token // the greatest that was granted to a writer
	reader   actors.Token // the greatest that was granted to a reader
	resource actors.Token // the greatest that the resource has had
	number   int64        // of the resource
}

// fenced returns the model of a lock and a resource. lost has the tokens of grants that ended by
// loss: another holder may follow such a grant at any time.
func fenced(lost map[actors.Token]bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return modelState{} },
		Step: func(state, in, out any) (bool, any) {
			m, op := state.(modelState), in.(operation)
			switch op.kind {
			case "lock":
				return m.lock(op, lost)
			case "unlock":
				if op.shared {
					m.readers--
					return m.readers >= 0, m
				}
				if m.held != op.token {
					return false, m
				}
				m.held = actors.Token{}
			default:
				return m.access(op, out.(outcome))
			}
			return true, m
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprint(in, out) },
	}
}

func (m modelState) lock(op operation, lost map[actors.Token]bool) (bool, any) {
	// In a session that has ended, others may hold already, with greater tokens. A downgrade has its
	// writer's token: then these others are readers.
	behind := op.token.Compare(m.writer) < 0 || !op.shared && op.token.Compare(m.reader) < 0 ||
		op.again && op.token == m.writer && m.held != op.token
	if op.late && behind {
		return true, m
	}
	free := m.held == actors.Token{} || lost[m.held]
	switch {
	case op.again && m.held == op.token:
	case !free || op.token.Compare(m.writer) <= 0:
		return false, m
	case op.shared:
		m.held = actors.Token{}
	case m.readers > 0 || op.token.Compare(m.reader) <= 0:
		return false, m
	default:
		m.held, m.writer = op.token, op.token
		return true, m
	}
	if op.token.Compare(m.reader) > 0 {
		m.reader = op.token
	}
	if !lost[op.token] {
		m.readers++
	}
	return true, m
}

// access is an access to the resource, which refuses a smaller token.
func (m modelState) access(op operation, out outcome) (bool, any) {
	accepted := op.token.Compare(m.resource) >= 0
	if accepted != out.accepted || !accepted {
		return accepted == out.accepted, m
	}
	m.resource = op.token
	switch op.kind {
	case "read":
		return out.number == m.number, m
	case "update": // of another number than the one that was read, it loses an update
		ok := op.number == m.number
		m.number++
		return ok, m
	}
	return true, m
}

// The model accepts the histories of a lock, and no others.
func TestHistoryModel(t *testing.T) {
	token := func(n int64) actors.Token { return actors.Token{Czxid: n} }
	op := func(call, ret int64, kind string, n int64, accepted bool) porcupine.Operation {
		return porcupine.Operation{Call: call, Return: ret, Input: operation{kind: kind, token: token(n)}, Output: outcome{accepted: accepted}}
	}
	reader := func(call int64, kind string, n int64, again bool) porcupine.Operation {
		return porcupine.Operation{Call: call, Return: call + 1, Input: operation{kind: kind, token: token(n), shared: true, again: again}}
	}
	late := func(o porcupine.Operation) porcupine.Operation {
		in := o.Input.(operation)
		in.late = true
		o.Input = in
		return o
	}
	update := func(call int64, read int64) porcupine.Operation {
		return porcupine.Operation{Call: call, Return: call + 1, Output: outcome{accepted: true},
			Input: operation{kind: "update", token: token(1), number: read}}
	}
	read := func(call int64, number int64) porcupine.Operation {
		return porcupine.Operation{Call: call, Return: call + 1, Output: outcome{accepted: true, number: number},
			Input: operation{kind: "read", token: token(1)}}
	}
	for _, test := range []struct {
		name string
		lost map[actors.Token]bool
		ops  []porcupine.Operation
		want bool
	}{
		{"in turn", nil, []porcupine.Operation{op(0, 1, "lock", 1, false), op(2, 3, "unlock", 1, false), op(4, 5, "lock", 2, false)}, true},
		{"two holders", nil, []porcupine.Operation{op(0, 1, "lock", 1, false), op(2, 3, "lock", 2, false)}, false},
		{"after a loss", map[actors.Token]bool{token(1): true}, []porcupine.Operation{op(0, 1, "lock", 1, false), op(2, 3, "lock", 2, false)}, true},
		{"tokens go back", nil, []porcupine.Operation{op(0, 1, "lock", 2, false), op(2, 3, "unlock", 2, false), op(4, 5, "lock", 1, false)}, false},
		{"late write refused", nil, []porcupine.Operation{op(0, 1, "write", 2, true), op(2, 3, "write", 1, false)}, true},
		{"late write accepted", nil, []porcupine.Operation{op(0, 1, "write", 2, true), op(2, 3, "write", 1, true)}, false},
		{"updates", nil, []porcupine.Operation{update(0, 0), update(2, 1), read(4, 2)}, true},
		{"update lost", nil, []porcupine.Operation{update(0, 0), update(2, 0)}, false},
		{"update not read", nil, []porcupine.Operation{update(0, 0), read(2, 0)}, false},
		{"readers", nil, []porcupine.Operation{reader(0, "lock", 2, false), reader(2, "lock", 1, false), reader(4, "unlock", 2, false), reader(6, "unlock", 1, false), op(8, 9, "lock", 3, false)}, true},
		{"writer beside a reader", nil, []porcupine.Operation{reader(0, "lock", 1, false), op(2, 3, "lock", 2, false)}, false},
		{"writer after a reader was lost", map[actors.Token]bool{token(1): true}, []porcupine.Operation{reader(0, "lock", 1, false), op(2, 3, "lock", 2, false)}, true},
		{"reader beside a writer", nil, []porcupine.Operation{op(0, 1, "lock", 1, false), reader(2, "lock", 2, false)}, false},
		{"a writer's token goes back", nil, []porcupine.Operation{reader(0, "lock", 2, false), reader(2, "unlock", 2, false), op(4, 5, "lock", 1, false)}, false},
		{"downgrade", nil, []porcupine.Operation{op(0, 1, "lock", 1, false), reader(2, "lock", 1, true), op(4, 5, "unlock", 1, false), reader(6, "lock", 2, false)}, true},
		{"late downgrade beside a reader", map[actors.Token]bool{token(1): true}, []porcupine.Operation{op(0, 1, "lock", 1, false), reader(2, "lock", 2, false), late(reader(4, "lock", 1, true))}, true},
		{"downgrade beside a reader", map[actors.Token]bool{token(1): true}, []porcupine.Operation{op(0, 1, "lock", 1, false), reader(2, "lock", 2, false), reader(4, "lock", 1, true)}, false},
		{"writer beside a downgrade", nil, []porcupine.Operation{op(0, 1, "lock", 1, false), reader(2, "lock", 1, true), op(4, 5, "unlock", 1, false), op(6, 7, "lock", 2, false)}, false},
	} {
		if got := porcupine.CheckOperations(fenced(test.lost), test.ops); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
