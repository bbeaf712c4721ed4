package actors

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge"
)

// Queue is the queue of one lock at one moment, as its nodes show it.
type Queue struct {
	// Path is the lock's path.
	Path string
	// Recipe is "mutex", "read-write", "semaphore", "leader latch" or "custom", by the names of the
	// nodes. It is empty while the lock has no node.
	Recipe string
	// Permits is how many permits a semaphore has. It is 0 if that is not known, or if its
	// processes do not agree: see [Participant.Permits]. Curator's nodes and those of SharedPermits
	// do not show the number.
	Permits int
	// Participants are the holders and the waiters, in their order.
	//
	// The participants of a semaphore are its leases, with the kind "permit", and behind them the
	// requests in the request queue that have no lease, with the kind "request". (A request may
	// appear beside its leases if one transaction has created them together with those of others.)
	// A lease holds by the number of permits of its process. If nothing shows that, Holds is true
	// of the leases that hold for certain, and false of the last leases of a session that has
	// requests in the request queue: they may hold or not.
	//
	// No participant of a custom lock Holds, because only its handle knows the rule: use the
	// handle's Participants. A waiter of kazoo's that polls has no node.
	Participants []Participant
	// Err is the reason why Observe cannot read the queue at present. Participants are the last
	// ones that Observe has read then, or the present ones without tokens if only the generation of
	// tokens cannot be read. Err is nil in the result of Inspect.
	Err error `json:"-"`
}

// String returns the recipe and the path, and how many hold and wait.
func (q Queue) String() string {
	if q.Recipe == "" {
		return q.Path + ": not in use"
	}
	holders := 0
	for _, p := range q.Participants {
		if p.Holds {
			holders++
		}
	}
	return fmt.Sprintf("%s %s: %d hold, %d wait", q.Recipe, q.Path, holders, len(q.Participants)-holders)
}

// Inspect returns the queue of the lock at path, whichever client or library uses it. It finds the
// recipe by the names of the nodes, and needs no handle. A lock that is not in use, and a path that
// does not exist, have an empty queue.
//
// The names in a directory are of one moment during the call, and include all nodes that ZooKeeper
// had acknowledged when Inspect was called; the contenders hold by these names. The data are read
// after them. Nodes that are deleted meanwhile are left out, which lets the contenders behind them
// appear to hold: by then they do. A semaphore's request queue is read before its leases, so that
// no request is missed between the two.
//
// It blocks until ZooKeeper has answered, with one request for each contender, ctx ends, or the
// connection is lost (ErrSuspended). It returns ErrNoAuth if this process may not list the
// directory; contenders whose data it may not read have none. If the generation of tokens alone
// cannot be read, it returns that error, and the queue without tokens.
func (l *Locks) Inspect(ctx context.Context, path string) (Queue, error) {
	return askInspect.one(ctx, l.at(path), none{})
}

func (h *handle) inspect(ctx context.Context, _ none) (Queue, error) {
	if err := check.Path(h.path); err != nil {
		return Queue{}, err
	}
	bridge := h.manager.Bridge
	r := queueReader{
		children: func(directory string) ([]zkbridge.Child, error) {
			return bridge.Children(ctx, directory, recipes.MayContend)
		},
		data:    func(path string) (zkbridge.NodeView, error) { return bridge.GetData(ctx, path) },
		session: bridge.Session().ID,
	}
	q, err := r.read(h.path)
	q.noteOwnGrants(h.manager, h.path)
	return q, err
}

// stampTokens completes the tokens with the generation. It reads that after the nodes, so that it
// is not older than they are.
func (q *Queue) stampTokens(data func(path string) (zkbridge.NodeView, error)) error {
	if len(q.Participants) == 0 {
		return nil
	}
	present, err := generationOf(data(zkbridge.GenerationPath))
	for i := range q.Participants {
		p := &q.Participants[i]
		if p.Token = present.token(p.Token.Czxid); err != nil {
			p.Token = Token{}
		}
	}
	return err
}

// queueReader reads queues. The tokens have generation 0.
type queueReader struct {
	children func(directory string) ([]zkbridge.Child, error) // contenders with data, others as names
	data     func(path string) (zkbridge.NodeView, error)
	session  int64 // of this process
}

func (r *queueReader) read(path string) (Queue, error) {
	q := Queue{Path: path}
	children, err := r.children(path)
	if err != nil {
		return q, err
	}
	form, contenders := recognize(children)
	switch {
	case form.KazooSemaphore:
		err = r.readKazooSemaphore(&q, form, contenders)
	case form.Name != "":
		q.Recipe, q.Participants = form.Name, r.participants(path, form, contenders)
		if form.Name == semaphore { // path is the directory of a semaphore's leases
			q.Permits = holdKnown(q.Participants, nil, len(children)-len(contenders))
		}
	case slices.ContainsFunc(children, isLeases):
		err = r.readSemaphore(&q)
	}
	if err == nil {
		err = q.stampTokens(r.data)
	}
	return q, err
}

func isLeases(c zkbridge.Child) bool { return c.Name == queue.LeasesSuffix[1:] }

const (
	mutex     = "mutex"
	semaphore = "semaphore"
)

// recognize returns the recipe by the children of a directory, and those that may be contenders.
func recognize(children []zkbridge.Child) (recipes.Form, []zkbridge.Child) {
	var names []string
	var contenders []zkbridge.Child
	for _, c := range children {
		// A node without a sequence number may be anything; a contender's is ephemeral, or it may
		// not be read.
		if queue.IsContender(c.Name) || recipes.MayContend(c.Name) && (c.Stat.EphemeralOwner != 0 || c.Stat.Czxid == 0) {
			names, contenders = append(names, c.Name), append(contenders, c)
		}
	}
	return recipes.Recognize(names), contenders
}

func (r *queueReader) participants(directory string, form recipes.Form, contenders []zkbridge.Child) []Participant {
	return participants(directory, contenders, form.Positions, form.KindName, r.session)
}

// readSemaphore reads the queue of a semaphore in Curator's form. If locks of another recipe are in
// the places of its directories, there is no semaphore.
func (r *queueReader) readSemaphore(q *Queue) error {
	requests, _, isQueue, err := r.readDirectory(q.Path+queue.RequestQueueSuffix, mutex)
	if err != nil {
		return err
	}
	held, others, areLeases, err := r.readDirectory(q.Path+queue.LeasesSuffix, semaphore)
	if err != nil || !isQueue || !areLeases {
		return err
	}
	q.Permits = holdKnown(held, requests, others)
	q.setSemaphore(held, requests)
	return nil
}

// readDirectory returns the contenders of a semaphore's request queue or leases, and how many other
// children there are. It returns false if the directory has contenders of another recipe.
func (r *queueReader) readDirectory(directory, recipe string) (all []Participant, others int, is bool, err error) {
	children, err := r.children(directory)
	if err != nil {
		return nil, 0, false, err
	}
	form, contenders := recognize(children)
	if form.Name != recipe {
		return nil, 0, form.Name == "", nil
	}
	return r.participants(directory, form, contenders), len(children) - len(contenders), true, nil
}

// setSemaphore makes the queue a semaphore's, with the requests behind the leases. It leaves out a
// request for each request that its session's leases show to wait, so that no waiter counts twice.
func (q *Queue) setSemaphore(held, requests []Participant) {
	if len(held)+len(requests) == 0 {
		return
	}
	type leases struct { // of one request, or of several without names that one transaction has created
		czxid       int64
		owner, data string
	}
	shown, waiting := map[leases]bool{}, map[int64]int{} // by session: requests whose leases may wait
	for _, p := range held {
		if key := (leases{p.Token.Czxid, p.Owner, string(p.Data)}); !p.Holds && !shown[key] {
			shown[key] = true
			waiting[p.Session]++
		}
	}
	requests = slices.DeleteFunc(requests, func(p Participant) bool {
		waiting[p.Session]--
		return waiting[p.Session] >= 0
	})
	for i := range requests {
		requests[i].Kind, requests[i].Holds, requests[i].Ahead = "request", false, len(held)+i
	}
	q.Recipe, q.Participants = semaphore, append(held, requests...)
}

// holdKnown has those leases hold of which that is known, and returns the number of permits on
// which all leases agree that show one, or 0. others is how many other children the directory has:
// each takes a permit.
//
// Without the number, this is known: a request leaves the request queue when it holds all its
// leases. One transaction has created them, so of a session with n requests the leases of the last
// n transactions may wait. Leases are granted in their order. There is one permit at least, and the
// first lease has it unless others may have taken it.
func holdKnown(held, requests []Participant, others int) (permits int) {
	mayWait := map[int64]int{} // by session: how many more transactions may have created leases that wait
	for _, p := range requests {
		mayWait[p.Session]++
	}
	last, oldest := len(held)-1, map[int64]int64{} // by session: the transaction of the last lease seen
	for ; last > 0 || last == 0 && others > 0; last-- {
		p := held[last]
		if p.Token.Czxid != oldest[p.Session] {
			mayWait[p.Session]--
			oldest[p.Session] = p.Token.Czxid
		}
		if mayWait[p.Session] < 0 {
			break
		}
	}
	permits = agreedPermits(held)
	for i, p := range held {
		held[i].Holds = i <= last
		if n := cmp.Or(p.Permits, permits); n > 0 {
			held[i].Holds = i+others < n
		}
	}
	return permits
}

// agreedPermits returns the number of permits that all participants have that show one, or 0.
func agreedPermits(all []Participant) (permits int) {
	for _, p := range all {
		if p.Permits != 0 && permits != 0 && p.Permits != permits {
			return 0
		}
		permits = cmp.Or(permits, p.Permits)
	}
	return permits
}

// readKazooSemaphore reads the queue of a kazoo Semaphore: it creates a lease only for a holder,
// and its requests wait in a lock beside it.
func (r *queueReader) readKazooSemaphore(q *Queue, form recipes.Form, contenders []zkbridge.Child) error {
	requests, _, _, err := r.readDirectory(q.Path+queue.KazooRequestQueueSuffix, mutex)
	if err != nil {
		return err
	}
	directory, err := r.data(q.Path)
	if err != nil {
		return err
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(directory.Data))); err == nil && n > 0 {
		q.Permits = n
	}
	held := r.participants(q.Path, form, contenders)
	holdKnown(held, nil, 0)
	q.setSemaphore(held, requests)
	return nil
}
