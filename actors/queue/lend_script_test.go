package queue

import (
	"fmt"
	"testing"
)

// The scripts in testdata/lend are like the others. Steps are written loan/grant.
func TestLendScripts(t *testing.T) {
	runScripts(t, "testdata/lend/*.txt", func() stepper { return &lendScript{NewLender(Mutex(), 3)} })
}

type lendScript struct{ *Lender }

func (s *lendScript) step(t *testing.T, line string) []string {
	word, args, num := parse(t, line)
	id, serial, why := ID(num("id", 0)), uint64(num("serial", 0)), Why(num("why", int64(SessionLost)))
	_, try := args["try"]
	_, tell := args["tell"]
	var e LendEvent
	switch word {
	case "rule":
		s.rule = map[string]Rule{"mutex": Mutex(), "readwrite": ReadWrite(), "simple": SimpleReadWrite()}[args["name"]]
		return nil
	case "lent": // as if it had been lent so often
		s.loan.lent = uint32(num("times", 0))
		return nil
	case "acquire":
		e = Acquire{ID: id, Owner: args["owner"], Kind: Kind(num("kind", 0)), Try: try, Tell: tell, Data: []byte(args["data"])}
	case "cancel":
		e = Cancel{ID: id, Why: Cancelled}
	case "release":
		e = Release{ID: id}
	case "borrowed":
		e = Borrowed{Serial: serial, Czxid: num("czxid", 100+int64(serial)), Step: uint32(num("step", 0))}
	case "refused":
		e = NotBorrowed{Serial: serial, Why: why}
	case "lost":
		e = Forfeited{Serial: serial, Why: why}
	case "wanted":
		e = Wanted{Serial: serial}
	case "overdue":
		e = Overdue{Serial: serial}
	case "lingered":
		e = Lingered{}
	case "close":
		e = Close{Why: Closed}
	default:
		t.Fatalf("unknown event %q", line)
	}
	var effects []string
	for _, f := range lend(s.Lender, e) {
		effects = append(effects, showLend(f))
	}
	return effects
}

func showLend(f Effect) string {
	switch f.Do {
	case DoBorrow:
		return fmt.Sprintf("borrow serial=%d kind=%d try=%t data=%q", f.Serial, f.Kind, f.Try, f.Data)
	case DoReturn:
		return fmt.Sprintf("return serial=%d", f.Serial)
	case DoLinger:
		return "linger"
	case DoGrant:
		return fmt.Sprintf("grant id=%d by=%d token=%d.%d/%d", f.ID, f.Serial, f.Czxid, f.Step>>lentBits, f.Step&mostLent)
	}
	return showAnswer(f)
}

// lend is Lend for an event of any type.
func lend(l *Lender, e LendEvent) []Effect { return Lend(l, e) }
