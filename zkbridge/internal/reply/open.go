package reply

import (
	"cmp"
	"slices"

	"github.com/actorlock/actorlock/messages"
)

// Request is a request that the bridge will answer. It has a Place.
type Request interface {
	Failer
	place() *Place
}

// Sender is a request whose sender gets the answer as a message.
type Sender interface {
	Request
	// Tell sends the answer.
	Tell(msg any)
}

// Failer is what can be refused.
type Failer interface {
	// Fail answers that the bridge will not do what was requested.
	Fail(why messages.Reason, detail string)
}

// Place is where a request stands in an Open. The zero Place is none.
type Place struct{ slot int32 } // from 1

func (p *Place) place() *Place { return p }

// Open is the requests that are not answered. The zero Open has none. (A map in its place took 6 % of
// the client's time for an acquire of a hot lock.)
type Open struct {
	slots []openRequest
	free  []int32 // places of slots without a request
	added uint64  // so far
}

type openRequest struct {
	request Request // nil for none
	number  uint64  // of all that were added
}

// Len returns the number of requests.
func (o *Open) Len() int { return len(o.slots) - len(o.free) }

// Add adds a request that is in no Open.
func (o *Open) Add(r Request) {
	o.added++
	added := openRequest{r, o.added}
	if n := len(o.free); n > 0 {
		r.place().slot, o.free = o.free[n-1], o.free[:n-1]
		*o.slot(r) = added
		return
	}
	o.slots = append(o.slots, added)
	r.place().slot = int32(len(o.slots))
}

// slot needs a Place that is within the slots.
func (o *Open) slot(r Request) *openRequest { return &o.slots[r.place().slot-1] }

// Has reports whether a request is among these. It may be in the Open of an earlier epoch.
func (o *Open) Has(r Request) bool {
	n := int(r.place().slot)
	return n > 0 && n <= len(o.slots) && o.slot(r).request == r
}

// Remove removes a request, if it is among these.
func (o *Open) Remove(r Request) {
	if o.Has(r) {
		*o.slot(r) = openRequest{}
		o.free = append(o.free, r.place().slot)
	}
}

// InOrder returns the requests in the order in which they were added.
func (o *Open) InOrder() (all []Request) {
	added := slices.DeleteFunc(slices.Clone(o.slots), func(s openRequest) bool { return s.request == nil })
	slices.SortFunc(added, func(x, y openRequest) int { return cmp.Compare(x.number, y.number) })
	for _, s := range added {
		all = append(all, s.request)
	}
	return all
}
