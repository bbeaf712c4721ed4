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
	machinetest.RunScripts(t, func() machinetest.Stepper {
		return &script{state: newState(queue.Mutex(), Incarnation{}), kinds: []string{"exclusive", "shared", "own"}}
	})
}

type script struct {
	state *State
	kinds []string
}

func (s *script) Step(line machinetest.Line) []string {
	if line.Word == "rule" {
		s.setRule(line.Text("name"), int(line.Number("permits", 1)))
		if !line.Has("numbered") {
			s.state.lastSerial = 0 // the serials begin at 1, whatever the permits
		}
		return nil
	}
	if line.Word == "keep-directory" {
		s.state.KeepDirectory()
		return nil
	}
	var effects []string
	for _, f := range step(s.state, s.event(line)) {
		effects = append(effects, s.show(f))
	}
	return effects
}

// setRule begins with another rule, and with an empty State.
func (s *script) setRule(name string, permits int) {
	rule := map[string]queue.Rule{"mutex": queue.Mutex(), "semaphore": queue.Semaphore(permits), "readwrite": queue.ReadWrite(), "delay": delayedMutex(),
		"leases": queue.Leases(permits), "request-queue": queue.RequestQueue(),
		"independent": withMarkers(machinetest.IndependentKinds(), "!~"), "intention": withMarkers(machinetest.IntentionLocks(), "~#$!")}[name]
	s.state, s.kinds = newState(rule, Incarnation{}), []string{"exclusive", "shared", "own"}
	switch name {
	case "independent":
		s.kinds = []string{"one", "other"}
	case "intention":
		s.kinds = []string{"IS", "IX", "S", "X"}
	}
}

func (s *script) event(line machinetest.Line) Event {
	serial := line.Serial()
	switch line.Word {
	case "acquire":
		e := Acquire(line.Request(s.kinds))
		if line.Has("atomic") {
			e.Atomic = true
		}
		return e
	case "cancel":
		return Cancel{ID: line.ID(), Reason: requests.Cancelled, Unclean: line.Has("unclean")}
	case "release":
		return Release{ID: line.ID()}
	case "resize":
		return Resize{int(line.Number("permits", 0))}
	case "created":
		return Created{Serial: serial, Node: s.name(line.Text("node")), Token: requests.Token{Czxid: line.Number("czxid", 100), Step: uint32(line.Number("step", 0))},
			Children: s.names(line.List("children")), DirectoryCzxid: line.Number("directory", 1),
			SameDirectory: line.Has("same"), Recent: line.Has("recent")}
	case "listed":
		return Listed{Serial: serial, Children: s.names(line.List("children")), DirectoryCzxid: line.Number("directory", 1)}
	case "watched":
		return Watched{Serial: serial, Gone: s.names(line.List("gone")), Data: s.data(line)}
	case "wake":
		return Wake{Epoch: line.Epoch(), Node: s.name(line.Text("node")), Deleted: !line.Has("kept")}
	case "deleted":
		return Deleted{Serial: serial, Missing: line.Has("missing")}
	case "transacted":
		return Transacted{Serial: serial, Done: !line.Has("failed"), Op: map[string]uint32{"marker": 1}[line.Text("failed")]}
	case "elapsed":
		return DelayElapsed{Serial: serial}
	case "failed":
		return Failed{Serial: serial, Reason: line.Reason(requests.SessionLost)}
	case "connected":
		return Session{Epoch: line.Epoch(), State: Connected}
	case "suspended":
		return Session{Epoch: line.Epoch(), State: Suspended}
	case "lost":
		return Session{Epoch: line.Epoch(), State: Lost}
	case "tick":
		s.state.ReleaseMemory()
		return Tick{}
	case "close":
		return Close{Reason: requests.Closed}
	}
	line.Unknown()
	return nil
}

// data returns the data of the held marker, and of the nodes that ask for a release.
func (s *script) data(line machinetest.Line) map[string][]byte {
	data := map[string][]byte{}
	if line.Has("marker") {
		data["held marker"] = []byte(s.name(line.Text("marker")))
	}
	for _, name := range s.names(line.List("revoke")) {
		data[name] = []byte(queue.RevokeData)
	}
	return data
}

// name returns the name of a node that scripts call me1#7 or other#7.
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
	if serial, isOwn := strings.CutPrefix(owner, "me"); isOwn {
		id, _ := strconv.ParseUint(serial, 10, 64)
		return s.state.incarnation.prefix(id, marker) + fmt.Sprintf("%010d", n)
	}
	if state, serial, other := strings.Cut(owner, "."); other {
		id, _ := strconv.ParseUint(serial, 10, 64)
		return incarnationOf(state).prefix(id, marker) + fmt.Sprintf("%010d", n)
	}
	return fmt.Sprintf("%s%s%010d", owner, marker, n)
}

// incarnationOf returns that of the State of another process, whose name is one letter.
func incarnationOf(state string) Incarnation { return Incarnation{state[0]} }

var markers = map[byte]string{'#': "-lock-", '!': "-__WRIT__", '~': "-__READ__", '$': "-lease-"}

func (s *script) names(list []string) []string {
	var names []string
	for _, short := range list {
		names = append(names, s.name(short))
	}
	return names
}

var sequenced = regexp.MustCompile(`^(.*)(-lock-|-lease-|-__WRIT__|-__READ__)(\d{10})?$`)

// short returns what scripts call a node.
func (s *script) short(name string) string {
	m := sequenced.FindStringSubmatch(name)
	if m == nil {
		return name
	}
	owner := m[1]
	if serial, ok := s.state.incarnation.serial(name); ok {
		owner = fmt.Sprintf("me%d", serial)
	} else if creator := creatorOf(name); strings.ContainsRune("pqr", rune(creator[0])) {
		serial, _ := incarnationOf(string(creator[0])).serial(name)
		owner = fmt.Sprintf("%c.%d", creator[0], serial)
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
	case requests.CreateNode:
		if f.Guard != "" {
			return fmt.Sprintf("create serial=%d node=%s beside=%s", f.Serial, s.short(f.Node), s.short(f.Guard))
		}
		return fmt.Sprintf("create serial=%d prefix=%s%s%s", f.Serial, s.short(f.Node), machinetest.When(f.ListAfter, " list-after"), machinetest.When(f.After != "", " after="+s.short(f.After)))
	case requests.ListDirectory:
		return fmt.Sprintf("list serial=%d%s", f.Serial, machinetest.When(f.Watch, " watch"))
	case requests.WatchNodes:
		var nodes []string
		for _, n := range f.Nodes {
			nodes = append(nodes, s.short(n))
		}
		return fmt.Sprintf("watch serial=%d nodes=%s%s", f.Serial, strings.Join(nodes, ","), machinetest.When(f.Since != 0, fmt.Sprintf(" since=%d", f.Since)))
	case requests.DeleteNode:
		return fmt.Sprintf("delete serial=%d node=%s", f.Serial, s.short(f.Node))
	case requests.DeleteDirectory:
		return fmt.Sprintf("delete-directory serial=%d", f.Serial)
	case requests.Grant:
		return fmt.Sprintf("grant id=%d node=%s token=%d.%d", f.ID, s.short(f.Node), f.Token.Czxid, f.Token.Step)
	case requests.ReportUnknownChild:
		return fmt.Sprintf("report-child name=%s", f.Node)
	case requests.ReportClients:
		return "report-clients"
	case requests.ReportPermits:
		return fmt.Sprintf("report-permits node=%s permits=%d", s.short(f.Node), f.Permits)
	case requests.RestoreData:
		return fmt.Sprintf("restore node=%s data=%s", s.short(f.Node), f.Data)
	case requests.CreateHeldMarker:
		return fmt.Sprintf("create-marker serial=%d node=%s", f.Serial, s.short(f.Node))
	case requests.ReplaceHeldMarker:
		return fmt.Sprintf("replace-marker serial=%d node=%s", f.Serial, s.short(f.Node))
	case requests.DeleteWithHeldMarker:
		return fmt.Sprintf("delete-with-marker serial=%d node=%s", f.Serial, s.short(f.Node))
	case requests.ReadHeldMarker:
		return fmt.Sprintf("read-marker serial=%d", f.Serial)
	case requests.StartDelay:
		return fmt.Sprintf("start-delay serial=%d", f.Serial)
	case requests.ReportHeldMarker:
		return fmt.Sprintf("report-marker reason=%v", f.Reason)
	}
	return machinetest.ShowAnswer(f.Effect)
}

func delayedMutex() queue.Rule {
	r := queue.Mutex()
	r.Delay = true
	return r
}

// withMarkers returns the rule with markers for which scripts have signs.
func withMarkers(r queue.Rule, signs string) queue.Rule {
	r.Markers = nil
	for _, sign := range []byte(signs) {
		r.Markers = append(r.Markers, markers[sign])
	}
	return r
}

// step is Step for an Event, whose type is not known.
func step(s *State, e Event) []Effect { return Step(s, e) }

// newState returns a State with a rule of its own.
func newState(rule queue.Rule, in Incarnation) *State { return New(&rule, in) }
