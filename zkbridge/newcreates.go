package zkbridge

import (
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
)

// newCreates are the creates of the present epoch in directories that this session has not seen. They wait
// here until the writer has few such directories to send. To take up a create takes the bridge ten
// times as long as to note it here: thousands of locks that are used for the first time at one
// moment must not stand in front of the requests of others.
type newCreates struct {
	waiting []*writer.Group
	n       int            // nodes of these
	in      map[string]int // by directory, how many of these nodes are to be in it, without the first of each lock
}

// maxNewCreates is how many directories the writer has to send at most while creates wait here, and
// how many of these are taken up in a row.
const maxNewCreates = 128

func (f *newCreates) add(g *writer.Group) {
	f.waiting = append(f.waiting, g)
	f.count(g, 1)
}

// count counts the nodes of a group that begins (1) or ends (-1) to wait.
func (f *newCreates) count(g *writer.Group, more int) {
	f.n += more * len(g.Creates())
	for _, c := range g.Creates() {
		if isFirst(c) {
			continue
		}
		if f.in == nil {
			f.in = map[string]int{}
		}
		directory := c.Message().GetDirectory()
		if f.in[directory] += more; f.in[directory] == 0 {
			delete(f.in, directory)
		}
	}
}

// isFirst reports whether a create is the first of its sender in a directory: see Create.list_after.
// The sender sees the directory by the answer to it, so that what it creates then comes later. (An
// answer to a create that the sender has given up before this one is an exception: a later create may
// then overtake this one. A map of thousands of first creates takes as long as all else here.)
func isFirst(c *writer.Create) bool {
	msg := c.Message()
	return msg.GetListAfter() && !msg.GetDirectoryExists() && !msg.GetDirectorySeen()
}

// hasNewCreates reports whether creates wait that the writer can take.
func (a *bridgeActor) hasNewCreates() bool {
	return len(a.newCreates.waiting) > 0 && a.epoch.Writer.NewWaiting() < maxNewCreates
}

// takeUpNewCreates passes on creates, in their order, as long as the writer has few directories to
// send that may be new. Flush calls it.
func (a *bridgeActor) takeUpNewCreates() {
	for i := 0; i < maxNewCreates && a.hasNewCreates(); i++ {
		a.openCreates(a.newCreates.removeFirst(), 0)
	}
	if a.hasNewCreates() {
		a.self.Tell(posted(func() {})) // a message that does nothing: Flush comes again behind it, and behind the requests that have come
	}
}

func (f *newCreates) removeFirst() *writer.Group {
	first := f.waiting[0]
	f.waiting[0] = nil
	f.waiting = f.waiting[1:]
	f.count(first, -1)
	if len(f.waiting) == 0 {
		*f = newCreates{} // the memory of many would stay
	}
	return first
}

// failNewCreates answers all creates that wait.
func (a *bridgeActor) failNewCreates(why messages.Reason, detail string) {
	for _, g := range a.newCreates.waiting {
		g.Fail(why, detail)
	}
	a.newCreates = newCreates{}
}
