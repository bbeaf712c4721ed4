package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

// lowerState is the State of one lock in one process, below a machine, and the machine's requests.
type lowerState struct {
	lock     *model
	process  *process
	requests map[requests.ID]*nodeRequest
}

// nodeRequest is a request of a machine for one node.
type nodeRequest struct {
	id   requests.ID
	node string // by which it was granted
	lost bool
}

// noteNews notes news of a request.
func (l *lowerState) noteNews(f Effect) {
	switch r := l.requests[f.ID]; f.Kind {
	case requests.Grant:
		r.node = f.Node
	case requests.Lose:
		r.lost = true
	}
}

// perform has the State perform an effect of the machine.
func (l *lowerState) perform(f requests.Effect) {
	switch f.Kind {
	case requests.Acquire:
		l.acquire(*f.Request)
	case requests.Cancel:
		if l.process.open[f.ID] != "" {
			l.lock.step(l.process, Cancel{ID: f.ID, Reason: requests.Cancelled})
		}
	case requests.Release:
		l.lock.release(l.process, f.ID)
	}
}

func (l *lowerState) acquire(r requests.Incoming) {
	l.requests[r.ID] = &nodeRequest{id: r.ID}
	l.process.open[r.ID] = "waiting"
	if r.NotifyContended {
		l.process.wantsContention[r.ID] = true
	}
	l.lock.step(l.process, Acquire(r))
}
