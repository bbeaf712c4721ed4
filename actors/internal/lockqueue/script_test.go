package lockqueue

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/machinetest"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// testdata/README.md explains the scripts.
func TestScripts(t *testing.T) {
	machinetest.RunScripts(t, "testdata/*.txt", func() machinetest.Stepper {
		return &script{state: New(queue.Mutex(), Incarnation{}), kinds: []string{"exclusive", "shared"}}
	})
}

type script struct {
	state *State
	kinds []string
}

func (s *script) Step(t *testing.T, line string) []string {
	word, args, num := machinetest.Parse(t, line)
	epoch, serial := uint64(num("epoch", 1)), uint64(num("serial", 0))
	_, try := args["try"]
	_, tell := args["notify"]
	_, kept := args["kept"]
	_, revocable := args["revocable"]
	atomic := uint64(0)
	if _, given := args["atomic"]; given {
		atomic = 1
	}
	_, same := args["same"]
	var e Event
	switch word {
	case "rule":
		permits := int(num("permits", 1))
		rule := map[string]queue.Rule{"mutex": queue.Mutex(), "semaphore": queue.Semaphore(permits), "readwrite": queue.ReadWrite(), "delay": delayed(),
			"leases": queue.Leases(permits), "request-queue": queue.RequestQueue(), "independent": withMarkers(ways(), "!~"), "intention": withMarkers(intention(), "~#$!")}[args["name"]]
		s.state, s.kinds = New(rule, Incarnation{}), []string{"exclusive", "shared", "own"}
		if kinds := map[string][]string{"independent": {"one", "other"}, "intention": {"IS", "IX", "S", "X"}}[args["name"]]; kinds != nil {
			s.kinds = kinds
		}
		return nil
	case "resize":
		e = Resize{int(num("permits", 0))}
	case "acquire":
		e = Acquire{ID: requests.ID(num("id", 0)), Owner: args["owner"], Kind: machinetest.Kind(t, args["kind"], s.kinds), Try: try, NotifyContended: tell, Data: []byte(args["data"]), Revocable: revocable, AtomicCreate: atomic}
	case "created":
		e = Created{Serial: serial, Node: s.name(args["node"]), Czxid: num("czxid", 100+num("seq", 0)), Step: uint32(num("step", 0)), Children: s.names(args["children"]), Directory: num("directory", 1), SameDirectory: same}
	case "listed":
		e = Listed{Serial: serial, Children: s.names(args["children"]), Czxids: machinetest.Numbers(t, args["czxids"]), Directory: num("directory", 1)}
	case "watched":
		e = Watched{Serial: serial, Gone: s.names(args["gone"]), Data: s.data(args)}
	case "wake":
		e = Wake{Epoch: epoch, Node: s.name(args["node"]), Deleted: !kept}
	case "transacted":
		op, failed := args["failed"]
		e = Transacted{Serial: serial, Done: !failed, Op: map[string]uint32{"marker": 1}[op]}
	case "elapsed":
		e = DelayElapsed{Serial: serial}
	case "tick":
		s.state.ReleaseMemory()
		e = Tick{}
	default:
		e = commonEvent(t, line)
	}
	var effects []string
	for _, f := range step(s.state, e) {
		effects = append(effects, s.show(f))
	}
	return effects
}

// commonEvent parses the events without names of nodes.
func commonEvent(t *testing.T, line string) Event {
	word, args, num := machinetest.Parse(t, line)
	_, missing := args["missing"]
	id, epoch, serial := requests.ID(num("id", 0)), uint64(num("epoch", 1)), uint64(num("serial", 0))
	switch word {
	case "cancel":
		_, unclean := args["unclean"]
		return Cancel{ID: id, Reason: requests.Cancelled, Unclean: unclean}
	case "release":
		return Release{ID: id}
	case "deleted":
		return Deleted{Serial: serial, Missing: missing}
	case "failed":
		return Failed{Serial: serial, Reason: machinetest.Reason(t, args["reason"], requests.SessionLost)}
	case "connected":
		return Session{Epoch: epoch, State: Connected}
	case "suspended":
		return Session{Epoch: epoch, State: Suspended}
	case "lost":
		return Session{Epoch: epoch, State: Lost}
	case "tick":
		return Tick{}
	case "close":
		return Close{Reason: requests.Closed}
	}
	t.Fatalf("unknown event %q", line)
	return nil
}

// data returns the data of the held marker, or of nodes whose holders are asked to release.
func (s *script) data(args map[string]string) map[string][]byte {
	data := map[string][]byte{}
	if by, ok := args["marker"]; ok {
		data["held marker"] = []byte(s.name(by))
	}
	for _, name := range s.names(args["revoke"]) {
		data[name] = []byte(queue.RevokeData)
	}
	return data
}

// name returns the node's name for me1#7 or other#7.
func (s *script) name(short string) string {
	i := strings.IndexAny(short, "#!~$")
	if i < 0 {
		return short
	}
	n, err := strconv.ParseInt(short[i+1:], 10, 64)
	if err != nil {
		return short
	}
	owner, marker := short[:i], markers[short[i]]
	if serial, mine := strings.CutPrefix(owner, "me"); mine {
		id, _ := strconv.ParseUint(serial, 10, 64)
		return s.state.incarnation.Prefix(id, marker) + fmt.Sprintf("%010d", n)
	}
	return fmt.Sprintf("%s%s%010d", owner, marker, n)
}

var markers = map[byte]string{'#': "-lock-", '!': "-__WRIT__", '~': "-__READ__", '$': "-lease-"}

func (s *script) names(list string) []string {
	if list == "" {
		return nil
	}
	var names []string
	for _, short := range strings.Split(list, ",") {
		names = append(names, s.name(short))
	}
	return names
}

var sequenced = regexp.MustCompile(`^(.*)(-lock-|-lease-|-__WRIT__|-__READ__)(\d{10})?$`)

func (s *script) short(name string) string {
	m := sequenced.FindStringSubmatch(name)
	if m == nil {
		return name
	}
	owner := m[1]
	if serial, ok := s.state.incarnation.serial(name); ok {
		owner = fmt.Sprintf("me%d", serial)
	}
	for sign, marker := range markers {
		if marker == m[2] {
			owner += string(sign)
		}
	}
	if m[3] == "" {
		return owner
	}
	seq, _ := strconv.Atoi(m[3])
	return fmt.Sprintf("%s%d", owner, seq)
}

func (s *script) show(f Effect) string {
	switch f.Kind {
	case CreateNode:
		if f.Beside != "" {
			return fmt.Sprintf("create serial=%d node=%s beside=%s", f.Serial, s.short(f.Node), s.short(f.Beside))
		}
		return fmt.Sprintf("create serial=%d prefix=%s%s%s", f.Serial, s.short(f.Node), machinetest.When(f.ListAfter, " list-after"), machinetest.When(f.After != "", " after="+s.short(f.After)))
	case ListDirectory:
		return fmt.Sprintf("list serial=%d%s%s", f.Serial, machinetest.When(f.WithCzxids, " czxids"), machinetest.When(f.Watch, " watch"))
	case WatchNodes:
		var nodes []string
		for _, n := range f.Nodes {
			nodes = append(nodes, s.short(n))
		}
		return fmt.Sprintf("watch serial=%d nodes=%s", f.Serial, strings.Join(nodes, ","))
	case DeleteNode:
		return fmt.Sprintf("delete serial=%d node=%s%s", f.Serial, s.short(f.Node), machinetest.When(f.WithDirectory, " with-directory"))
	case Grant:
		return fmt.Sprintf("grant id=%d node=%s token=%d.%d", f.ID, s.short(f.Node), f.Czxid, f.Step)
	case ReportUnknownChild:
		return fmt.Sprintf("report-child name=%s", f.Node)
	case RequestRevoke:
		return fmt.Sprintf("revoke id=%d", f.ID)
	case RestoreData:
		return fmt.Sprintf("restore node=%s data=%s", s.short(f.Node), f.Data)
	case CreateHeldMarker:
		return fmt.Sprintf("create-marker serial=%d node=%s", f.Serial, s.short(f.Node))
	case ReplaceHeldMarker:
		return fmt.Sprintf("replace-marker serial=%d node=%s", f.Serial, s.short(f.Node))
	case DeleteWithHeldMarker:
		return fmt.Sprintf("delete-with-marker serial=%d node=%s", f.Serial, s.short(f.Node))
	case ReadHeldMarker:
		return fmt.Sprintf("read-marker serial=%d", f.Serial)
	case StartDelay:
		return fmt.Sprintf("start-delay serial=%d", f.Serial)
	case ReportHeldMarker:
		return fmt.Sprintf("report-marker reason=%v", f.Reason)
	}
	return machinetest.ShowAnswer(f.Kind, f.ID, f.Reason, f.StillHeld)
}

func delayed() queue.Rule {
	r := queue.Mutex()
	r.Delay = true
	return r
}

// withMarkers returns the rule with markers that scripts can write.
func withMarkers(r queue.Rule, signs string) queue.Rule {
	r.Markers = nil
	for _, sign := range []byte(signs) {
		r.Markers = append(r.Markers, markers[sign])
	}
	return r
}

// step is Step for an event of any type.
func step(s *State, e Event) []Effect { return Step(s, e) }
