package queue

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the effects that scripts get into their files")

// The scripts in testdata are lines "> event key=value ...", each followed by the
// effects that it must have. Nodes are written owner#sequence: me1#7 is the node made
// under our serial 1, any other owner somebody else's. "#" begins a comment.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, string(want))
			if got == string(want) {
				return
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("got:\n%s", firstDifference(got, string(want)))
		})
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			from := max(0, i-6)
			return fmt.Sprintf("%s\nat line %d, want from there:\n%s", strings.Join(g[from:min(i+6, len(g))], "\n"), i+1, strings.Join(w[min(i, len(w)):min(i+6, len(w))], "\n"))
		}
	}
	return "(shorter)\n" + got
}

func runScript(t *testing.T, text string) string {
	var out strings.Builder
	s := &script{state: NewState(Mutex(), Incarnation{})}
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		event, isEvent := strings.CutPrefix(line, "> ")
		if !isEvent {
			if strings.HasPrefix(line, "#") || line == "" {
				fmt.Fprintln(&out, line)
			}
			continue // an effect: written anew below
		}
		fmt.Fprintln(&out, line)
		for _, e := range s.step(t, event) {
			fmt.Fprintln(&out, e)
		}
	}
	return out.String()
}

type script struct{ state *State }

func (s *script) step(t *testing.T, line string) []string {
	words := strings.Fields(line)
	args := map[string]string{}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		args[k] = v
	}
	num := func(key string, otherwise int64) int64 {
		v, ok := args[key]
		if !ok {
			return otherwise
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return n
	}
	epoch, serial := uint64(num("epoch", 1)), uint64(num("serial", 0))
	_, try := args["try"]
	_, kept := args["kept"]
	var e Event
	switch words[0] {
	case "rule":
		s.state.rule = map[string]Rule{"mutex": Mutex(), "semaphore": Semaphore(int(num("permits", 1))), "readwrite": ReadWrite()}[args["name"]]
		return nil
	case "acquire":
		e = Acquire{ID: ID(num("id", 0)), Owner: args["owner"], Kind: Kind(num("kind", 0)), Try: try}
	case "cancel":
		e = Cancel{ID: ID(num("id", 0)), Why: Cancelled}
	case "release":
		e = Release{ID: ID(num("id", 0))}
	case "created":
		e = Created{Epoch: epoch, Serial: serial, Node: s.name(args["node"]), Czxid: num("czxid", 100+num("seq", 0)), Step: uint32(num("step", 0)), Others: int(num("others", 0)), Children: s.names(args["children"]), Directory: num("directory", 0)}
	case "listed":
		e = Listed{Epoch: epoch, Serial: serial, Children: s.names(args["children"]), Directory: num("directory", 0)}
	case "watched":
		e = Watched{Epoch: epoch, Serial: serial, Gone: s.names(args["gone"])}
	case "wake":
		e = Wake{Epoch: epoch, Node: s.name(args["node"]), Deleted: !kept}
	case "deleted":
		e = Deleted{Serial: serial}
	case "failed":
		e = Failed{Epoch: epoch, Serial: serial, Why: Why(num("why", int64(SessionLost)))}
	case "connected":
		e = Session{Epoch: epoch, State: Connected}
	case "suspended":
		e = Session{Epoch: epoch, State: Suspended}
	case "lost":
		e = Session{Epoch: epoch, State: Lost}
	case "tick":
		e = Tick{}
	case "close":
		e = Close{Why: Closed}
	default:
		t.Fatalf("unknown event %q", line)
	}
	var effects []string
	for _, f := range step(s.state, e) {
		effects = append(effects, s.show(f))
	}
	return effects
}

// name gives me1#7 and other#7 the names that nodes have.
func (s *script) name(short string) string {
	owner, seq, ok := strings.Cut(short, "#")
	if !ok {
		return short
	}
	n, err := strconv.ParseInt(seq, 10, 64)
	if err != nil {
		return short
	}
	if serial, mine := strings.CutPrefix(owner, "me"); mine {
		id, _ := strconv.ParseUint(serial, 10, 64)
		return s.state.in.Prefix(id, "-lock-") + fmt.Sprintf("%010d", n)
	}
	return fmt.Sprintf("%s-lock-%010d", owner, n)
}

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

var sequenced = regexp.MustCompile(`^(.*)-lock-(\d{10})?$`)

func (s *script) short(name string) string {
	m := sequenced.FindStringSubmatch(name)
	if m == nil {
		return name
	}
	owner := m[1]
	if serial, ok := s.state.in.serial(name); ok {
		owner = fmt.Sprintf("me%d", serial)
	}
	if m[2] == "" {
		return owner + "#"
	}
	seq, _ := strconv.Atoi(m[2])
	return fmt.Sprintf("%s#%d", owner, seq)
}

func (s *script) show(f Effect) string {
	switch f.Do {
	case DoCreate:
		return fmt.Sprintf("create serial=%d prefix=%s", f.Serial, s.short(f.Node))
	case DoList:
		return fmt.Sprintf("list serial=%d", f.Serial)
	case DoWatch:
		var nodes []string
		for _, n := range f.Nodes {
			nodes = append(nodes, s.short(n))
		}
		return fmt.Sprintf("watch serial=%d nodes=%s", f.Serial, strings.Join(nodes, ","))
	case DoDelete:
		return fmt.Sprintf("delete serial=%d node=%s", f.Serial, s.short(f.Node))
	case DoGrant:
		return fmt.Sprintf("grant id=%d node=%s token=%d.%d", f.ID, s.short(f.Node), f.Czxid, f.Step)
	case DoRefuse:
		return fmt.Sprintf("refuse id=%d why=%d", f.ID, f.Why)
	case DoLose:
		return fmt.Sprintf("lose id=%d why=%d", f.ID, f.Why)
	case DoReleased:
		return fmt.Sprintf("released id=%d still=%d", f.ID, f.StillHeld)
	case DoReport:
		return fmt.Sprintf("report name=%s", f.Node)
	}
	return fmt.Sprintf("effect %d", f.Do)
}

// step is Step for an event of any type.
func step(s *State, e Event) []Effect { return Step(s, e) }
