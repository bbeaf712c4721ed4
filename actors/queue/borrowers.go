package queue

import "slices"

// Who wants something of a Lender.

// borrower is an owner that waits or holds, by one request or several.
type borrower struct {
	stage      stage // queued, held or lost
	owner      string
	kind       Kind
	data       []byte
	step       uint32
	requests   []request
	buf        [1]request
	why        Why // it was lost
	prev, next *borrower
}

func (l *Lender) refuse(id ID, why Why) { l.effect(Effect{Do: DoRefuse, ID: id, Why: why}) }

func (l *Lender) add(b *borrower, r request) {
	l.requests[r.id] = b
	b.requests = append(b.requests, r)
}

// drop takes a request off its borrower, which ends with the last.
func (l *Lender) drop(b *borrower, id ID) {
	delete(l.requests, id)
	b.requests = slices.DeleteFunc(b.requests, func(r request) bool { return r.id == id })
	if len(b.requests) > 0 {
		return
	}
	if l.owners[b.owner] == b {
		delete(l.owners, b.owner)
	}
	switch b.stage {
	case queued:
		l.waiting.remove(b)
	case held:
		i := slices.Index(l.holders, b)
		l.holders = slices.Delete(l.holders, i, i+1)
	}
	if len(l.spare) < maxSpare {
		l.spare = append(l.spare, b)
	}
}

const maxSpare = 64

func (l *Lender) newBorrower() *borrower {
	var b *borrower
	if n := len(l.spare); n > 0 {
		b, l.spare = l.spare[n-1], l.spare[:n-1]
		*b = borrower{}
	} else {
		b = new(borrower)
	}
	b.requests = b.buf[:0]
	return b
}

// refuseAll refuses all who wait.
func (l *Lender) refuseAll(why Why) { l.refuseThose(why, func(request) bool { return true }) }

// refuseTries refuses the requests that would rather not wait.
func (l *Lender) refuseTries() {
	l.refuseThose(NotAcquired, func(r request) bool { return r.try })
}

func (l *Lender) refuseThose(why Why, refused func(request) bool) {
	for b := l.waiting.first; b != nil; {
		next := b.next
		for _, r := range slices.Clone(b.requests) {
			if refused(r) {
				l.refuse(r.id, why)
				l.drop(b, r.id)
			}
		}
		b = next
	}
}

func (b *borrower) onlyTries() bool {
	return !slices.ContainsFunc(b.requests, func(r request) bool { return !r.try })
}

// line is a queue of borrowers that may leave it from anywhere.
type line struct{ first, last *borrower }

func (q *line) push(b *borrower) {
	b.prev = q.last
	if q.last == nil {
		q.first = b
	} else {
		q.last.next = b
	}
	q.last = b
}

func (q *line) remove(b *borrower) {
	if b.prev == nil {
		q.first = b.next
	} else {
		b.prev.next = b.next
	}
	if b.next == nil {
		q.last = b.prev
	} else {
		b.next.prev = b.prev
	}
	b.prev, b.next = nil, nil
}
