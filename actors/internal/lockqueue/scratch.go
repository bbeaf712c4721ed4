package lockqueue

import "sync"

// scratch is memory that a State needs during an event only. The States of a process share it: each
// would keep as much as its longest event has needed.
type scratch struct {
	out          []Effect
	blockers     []*contender
	firstWaiting []*contender
}

var scratches = sync.Pool{New: func() any { return &scratch{} }}

func (s *State) needScratch() {
	if s.scratch == nil {
		s.scratch = scratches.Get().(*scratch)
	}
}

// Performed notes that the effects of the last Step have been performed. The slice that Step has
// returned is not valid any more.
func (s *State) Performed() {
	if f := s.scratch; f != nil {
		clear(f.out)
		clear(f.blockers)
		clear(f.firstWaiting)
		s.scratch = nil
		scratches.Put(f)
	}
}
