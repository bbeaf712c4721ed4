package zkbridge

import (
	"log/slog"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
)

// newCreates are the creates of the present epoch in directories that this session has not seen. They wait
// here until the writer has few such directories to send. To take up a create takes the bridge ten
// times as long as to note it here: thousands of locks that are used for the first time at one
// moment must not stand in front of the requests of others.
type newCreates struct {
	waiting []*createRequest
	n       int            // nodes of these
	in      map[string]int // by directory, how many of these nodes are to be in it, without the first of each lock
}

// maxNewCreates is how many directories the writer has to send at most while creates wait here, and
// how many of these are taken up in a row.
const maxNewCreates = 128

// isFirst reports whether a create is the first of its sender in a directory: see Create.list_after.
// The sender sees the directory by the answer to it, so that what it creates then comes later. (An
// answer to a create that the sender has given up before this one is an exception: a later create may
// then overtake this one. A map of thousands of first creates takes as long as all else here.)
func isFirst(msg *messages.Create) bool {
	return msg.GetListAfter() && !msg.GetDirectoryExists() && !msg.GetDirectorySeen()
}

func (f *newCreates) removeFirst() *createRequest {
	first := f.waiting[0]
	f.waiting[0] = nil
	f.waiting = f.waiting[1:]
	for _, msg := range first.creates() {
		f.n--
		if isFirst(msg) {
			continue
		}
		if left := f.in[msg.GetDirectory()] - 1; left > 0 {
			f.in[msg.GetDirectory()] = left
		} else {
			delete(f.in, msg.GetDirectory())
		}
	}
	if len(f.waiting) == 0 {
		*f = newCreates{} // the memory of many would stay
	}
	return first
}

func (f *newCreates) add(r *createRequest) {
	for _, p := range r.specs {
		msg := p.Create
		if isFirst(msg) {
			continue
		}
		if f.in == nil {
			f.in = map[string]int{}
		}
		f.in[msg.GetDirectory()]++
	}
	f.waiting = append(f.waiting, r)
	f.n += len(r.specs)
}

// CreateSpec is one node of Internals.CreateAtomically: a Create, and the actor that would have sent
// it.
type CreateSpec struct {
	From   ask.Recipient
	Create *messages.Create
}

// createRequest is the message of CreateAtomically to the actor, or a Create that waits among the
// newCreates.
type createRequest struct {
	specs []CreateSpec
	log   *slog.Logger
}

func (r *createRequest) creates() (all []*messages.Create) {
	for _, p := range r.specs {
		all = append(all, p.Create)
	}
	return all
}

// Fail implements reply.Failer.
func (r *createRequest) Fail(why messages.Reason, detail string) {
	for _, p := range r.specs {
		reply.To{Recipient: p.From, ID: p.Create.GetId(), Epoch: p.Create.GetEpoch(), Log: r.log}.Fail(why, detail)
	}
}
