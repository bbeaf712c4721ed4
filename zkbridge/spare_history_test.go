package zkbridge

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

var historySeed = flag.Uint64("history.seed", 0, "of TestSpareHistories, to do again what has failed; 0 for any")

// TestSpareHistories has a user of the bridge release and create nodes in several
// directories by shared transactions, while others use and remake the directories between
// them, and connections are cut. What Created tells is compared with what is there.
func TestSpareHistories(t *testing.T) {
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		seed := cmp.Or(*historySeed, rand.Uint64())
		t.Logf("seed %d", seed)
		proxy := zktest.Proxy(t, s.Addr())
		h := &history{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), conn: s.Client(t), cut: proxy.Cut,
			user: newUser(t, connected(t, Config{Servers: proxy.Addr()})), fill: s.Path(t)}
		for i := range 6 {
			h.places = append(h.places, &visited{dir: fmt.Sprintf("%s-%d", h.fill, i)})
			h.user.created(h.places[i].dir, "first-")
		}
		h.user.created(h.fill, "first-")
		for n := 0; n < 100 && !t.Failed(); n++ {
			h.round()
		}
		t.Logf("of %d told there were no others of %d, not known of %d", h.told, h.alone, h.unknown)
		if h.alone == 0 { // of the others there may be few
			t.Error("none was alone")
		}
	})
}

type history struct {
	*testing.T
	*rand.Rand
	user   *user
	conn   *zk.Conn
	cut    func()
	fill   string
	places []*visited
	names  int // given so far
	asked  map[uint64]*visited

	told, alone, unknown int
}

// visited is a directory as the history knows it.
type visited struct {
	dir      string
	released int                 // in this round
	added    []*messages.Created // in this round
	tokens   []*messages.Created // of the present directory
}

// seldom is true once in n times.
func (h *history) seldom(n int) bool { return h.IntN(n) == 0 }

func (h *history) name(kind string) string {
	h.names++
	return fmt.Sprintf("%s%d-", kind, h.names)
}

func (h *history) round() {
	for _, p := range h.places {
		p.released, p.added = 0, nil
		if h.seldom(4) {
			h.disturb(p)
		}
	}
	h.asked = map[uint64]*visited{}
	leave := make(chan struct{})
	if !h.seldom(8) { // else nothing is held up: there are many transactions
		h.user.bridge.ref.Tell(task(func(*core) { <-leave }))
		for range maxMultis {
			h.asked[h.user.create(h.fill, h.name("fill"))] = nil
		}
	}
	h.Shuffle(len(h.places), func(i, j int) { h.places[i], h.places[j] = h.places[j], h.places[i] })
	for _, p := range h.places {
		if !h.seldom(5) {
			h.use(p)
		}
	}
	if h.seldom(6) {
		h.joint(h.places[:2])
	}
	close(leave)
	if h.seldom(25) {
		h.cut()
	}
	h.check()
}

// ours are the nodes that the bridge's session has in the directory.
func (h *history) ours(p *visited) (ours []string) {
	for _, name := range h.children(p) {
		if strings.HasPrefix(name, "n") || strings.HasPrefix(name, "first") {
			ours = append(ours, name)
		}
	}
	slices.Sort(ours)
	return ours
}

func (h *history) children(p *visited) []string {
	names, _, err := h.conn.Children(p.dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		h.Fatal(err)
	}
	return names
}

// use releases some of ours and creates others, mostly one for one.
func (h *history) use(p *visited) {
	create := func() { h.asked[h.user.create(p.dir, h.name("n"))] = p }
	ours := h.ours(p)
	if h.seldom(12) {
		create()
	}
	for i, node := range ours {
		if i > 0 && h.seldom(3) {
			continue
		}
		if i == 0 && len(ours) > 1 && h.seldom(2) { // leave the one before the last
			continue
		}
		p.released++
		h.user.release(p.dir, node)
	}
	if h.seldom(15) {
		h.user.bridge.Forget(p.dir)
	}
	create()
	if h.seldom(6) {
		create()
	}
}

func (h *history) joint(places []*visited) {
	var parts []Part
	for _, p := range places {
		id := h.user.id()
		h.asked[id] = p
		parts = append(parts, Part{h.user, &messages.Create{Id: id, Epoch: h.user.epoch(), Directory: p.dir, Prefix: h.name("n")}})
	}
	h.user.bridge.CreateAll(parts)
}

// disturb is what others do.
func (h *history) disturb(p *visited) {
	switch h.IntN(6) {
	case 0, 1:
		h.others(p, 1+h.IntN(2))
	case 2, 3:
		h.clear(p, func(name string) bool { return !strings.HasPrefix(name, "n") })
	case 4:
		h.clear(p, func(string) bool { return h.seldom(2) })
	case 5:
		h.clear(p, func(string) bool { return true })
		if err := h.conn.Delete(p.dir, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			h.Fatal(err)
		}
		if h.seldom(3) {
			return // the bridge makes it
		}
		var data []byte
		if h.seldom(5) {
			data = []byte("theirs")
		}
		_, err := h.conn.Create(p.dir, data, 0, zk.WorldACL(zk.PermAll))
		must(h, err)
		h.others(p, h.IntN(4))
		if h.seldom(2) {
			h.clear(p, func(string) bool { return h.seldom(2) })
		}
	}
}

func (h *history) others(p *visited, n int) {
	for range n {
		_, err := h.conn.Create(p.dir+"/"+h.name("other"), nil, int32(zk.FlagSequence*h.IntN(2)), zk.WorldACL(zk.PermAll))
		if err != nil && !errors.Is(err, zk.ErrNoNode) { // an empty directory goes by itself
			h.Fatal(err)
		}
	}
}

func (h *history) clear(p *visited, which func(name string) bool) {
	for _, name := range h.children(p) {
		if which(name) {
			must(h, h.conn.Delete(p.dir+"/"+name, -1))
		}
	}
}

// check waits for the answers and compares them with what is there.
func (h *history) check() {
	for len(h.asked) > 0 {
		m := next[*messages.Created](h, h.user.peer)
		p, ok := h.asked[m.GetId()]
		if !ok {
			h.Fatalf("%v is not an answer", m)
		}
		delete(h.asked, m.GetId())
		if p != nil {
			p.added = append(p.added, m)
		}
	}
	none[*messages.Failed](h, h.user.peer)
	for _, p := range h.places {
		for range p.released {
			next[*messages.NodeReleased](h, h.user.peer)
		}
	}
	for _, p := range h.places {
		if len(p.added) > 0 {
			h.compare(p)
		}
	}
}

func (h *history) compare(p *visited) {
	_, dir, err := h.conn.Exists(p.dir)
	must(h, err)
	stats := map[string]*zk.Stat{}
	for _, name := range h.children(p) {
		if _, stats[name], err = h.conn.Exists(p.dir + "/" + name); err != nil {
			h.Fatal(err)
		}
	}
	if len(p.tokens) > 0 && p.tokens[0].GetDirectoryCzxid() != dir.Czxid {
		p.tokens = nil
	}
	for _, m := range p.added {
		node := stats[m.GetNode()]
		if node == nil || node.Czxid != m.GetCzxid() || m.GetDirectoryCzxid() != dir.Czxid {
			h.Errorf("%s: %v, but it is %+v in %+v", p.dir, m, node, dir)
			continue
		}
		before := 0
		for _, other := range stats {
			if other.Czxid < node.Czxid {
				before++
			}
		}
		others := int(m.GetOthers())
		if others != -1 && (others < before || others > before+p.released) { // they may have gone later
			h.Errorf("%s: %v, but %d are before it, and %d were released", p.dir, m, before, p.released)
		}
		h.told++
		switch others {
		case 0:
			h.alone++
		case -1:
			h.unknown++
		}
	}
	p.tokens = append(p.tokens, p.added...)
	slices.SortFunc(p.tokens, func(a, b *messages.Created) int { return cmp.Compare(sequence(a), sequence(b)) })
	for i, m := range p.tokens[1:] {
		if l := p.tokens[i]; cmp.Or(cmp.Compare(l.GetCzxid(), m.GetCzxid()), cmp.Compare(l.GetStep(), m.GetStep())) >= 0 {
			h.Errorf("%s: the token of %v is not less than that of %v", p.dir, l, m)
		}
	}
}
