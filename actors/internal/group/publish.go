package group

import (
	"bytes"
	"errors"
	"time"

	"github.com/actorlock/actorlock/actors/internal/campaign"
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/partition"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
)

// publisher keeps a member in the list of members. A record is the data of a node, which cannot change:
// for a new one the member acquires another read lock, and then releases the one before. So others see
// the member all the time. A record is published when it is granted. If a program holds or awaits the list
// as a writer, it is published when the member sees it in the list.
type publisher struct {
	member *Membership
	data   []byte // that the member has joined with

	joined   bool         // the member was in the list
	listens  bool         // the member hears of changes of the group
	present  *lockRequest // published; nil if there is none
	number   int64        // of the present record, as partition.MemberRecord.Published; 0 without one
	next     *lockRequest // not published yet; nil if there is none
	releases int          // that are not confirmed
	record   partition.Record
	pace     Pace
	due      uint64 // the number of the publishDue that counts; an earlier one is ignored
	gathers  bool   // it is about changes, and comes soon
	reminded int    // publications in a row without a change
	failed   int    // in a row
	leaving  bool
	warned   bool // of a writer

	revoked     *lockRequest // the record that the member is asked to release; nil if there was none
	overwritten bool         // another program has overwritten a record
}

// Messages of a member's actor to itself.
type (
	// publishDue says that the member publishes what has changed.
	publishDue struct {
		number uint64
		remind bool // publish also if nothing has changed
	}
	// overdue says that a record may have been granted by now.
	overdue struct{ record *lockRequest }
)

const (
	// gathering is how long a member gathers changes before it publishes.
	gathering = 10 * time.Millisecond
	// reminding is the time after which a member publishes again that it waits. Others take a
	// record for a reason to resign once only.
	firstReminder, longestReminder = time.Second, 10 * time.Second
	// longGrant is how long a member waits for the grant of a record before it looks for it in the list.
	longGrant = time.Second
	// longestInterval bounds Interval.
	longestInterval = 2 * time.Second
)

// gather sets a timer for a publication of what has changed. An earlier publication may delay it: see
// Interval.
func (p *publisher) gather() {
	if !p.gathers {
		p.announce()
	}
}

// announce is gather for what the others are to know soon, that the member is leaving: they take its place
// while its functions have yet to return.
func (p *publisher) announce() {
	if !p.leaving && p.next == nil {
		p.gathers = true
		p.dueAfter(gathering, false)
	}
}

func (p *publisher) dueAfter(d time.Duration, remind bool) {
	p.due++
	p.member.after(d, publishDue{p.due, remind})
}

func (p *publisher) onDue(msg publishDue) {
	if msg.number != p.due || p.leaving || p.next != nil {
		return
	}
	leaves := p.member.machine.Leaving() != p.record.Leaving
	if rest := p.pace.Rest(time.Now(), Interval(p.member.machine.Members())); rest > 0 && p.present != nil && !leaves {
		p.dueAfter(rest, msg.remind)
		return
	}
	p.gathers = false
	leads, waits := p.member.machine.Publication()
	changed := leaves || !bytes.Equal(leads, p.record.Leads) || !bytes.Equal(waits, p.record.Waits)
	switch {
	case changed:
		p.reminded = 0
		p.publish()
	case p.present == nil:
		p.publish()
	case msg.remind:
		p.reminded++
		p.publish()
	default:
		p.remindLater()
	}
}

// remindLater sets a timer for the same record once more, if the member waits.
func (p *publisher) remindLater() {
	for range p.record.Waits.All() {
		p.dueAfter(min(firstReminder<<min(p.reminded, 10), longestReminder), true)
		return
	}
}

// publish sends a record.
func (p *publisher) publish() {
	m := p.member
	leads, waits := m.machine.Publication()
	p.record = partition.Record{Partitions: m.Partitions, Member: partition.FormatID(m.ID), Leads: leads, Waits: waits, Leaving: m.machine.Leaving(), Data: p.data}
	p.next = &lockRequest{member: m, path: Members(m.Path), recipe: recipes.ReadWrite, partition: -1,
		acquire: &messages.Acquire{Kind: uint32(queue.Shared), Data: p.record.Encode()}}
	p.next.begin()
	m.after(longGrant, overdue{p.next})
}

// onOverdue has a record count as soon as it is in the list.
func (p *publisher) onOverdue(r *lockRequest) {
	if r != p.next {
		return
	}
	r.overdue = true
	p.listen()
	p.onSeen()
}

// onSeen takes an overdue record for published that is in the list: a writer keeps it from being granted.
func (p *publisher) onSeen() {
	state := p.member.state.Load()
	if p.next == nil || !p.next.overdue || state == nil || state.View == nil {
		return
	}
	own, is := state.View.Find(p.member.ID)
	if is && own.Published > p.number && own.Leaving == p.record.Leaving && bytes.Equal(own.Leads, p.record.Leads) && bytes.Equal(own.Waits, p.record.Waits) {
		p.warn()
		p.onPublished(own.Published)
	}
}

// warn logs once that a writer locks the list.
func (p *publisher) warn() {
	if !p.warned {
		p.warned = true
		p.member.Manager.Log.Warn("another program holds or awaits the list of members of a group as a writer: the members do without that lock",
			"path", p.next.path, "do", "have the program use another path")
	}
}

// listen has the member hear of changes of the group.
func (p *publisher) listen() {
	if !p.listens {
		p.listens = true
		p.member.listen(p.member, func() { p.member.self.Tell(changed{}) })
	}
}

func (p *publisher) onAnswered(r *lockRequest, msg any) {
	switch msg := msg.(type) {
	case *messages.Granted:
		r.granted = !r.ended
		if r == p.next {
			p.onPublished(publishedBy(lock.NodeOf(msg)))
		}
	case *messages.RevokeRequested:
		if r == p.present {
			p.revoked = r
			p.giveBack()
		}
	case *messages.Lost:
		if r.ended && !r.granted { // the Cancel has come behind the loss, and has no answer
			p.releases--
		} else {
			p.onLost(r, msg)
		}
	case *messages.Released:
		p.releases--
	case error:
		switch {
		case r.ended:
			p.releases--
		case r == p.present: // it was not granted
			p.onLost(r, msg)
		case r != p.next:
		case errors.Is(msg, messages.Reason_STOPPED):
			r.begin()
		default:
			p.next = nil
			p.onRefused(msg)
		}
	}
	p.finishIfLeft()
}

// onLost publishes again after the loss of the present record.
func (p *publisher) onLost(r *lockRequest, why error) {
	if r == p.present {
		p.present, p.number = nil, 0
		p.member.failIfFinal(why)
		p.again(0)
	}
}

func (p *publisher) onPublished(number int64) {
	before := p.present
	p.present, p.number, p.next, p.failed = p.next, number, nil, 0
	p.pace.Note(time.Now(), Interval(p.member.machine.Members()))
	p.drop(before)
	if !p.joined {
		p.joined = true
		p.listen()
		p.member.readAgain() // the directory may have been missing until now
		p.rereadLater()
	}
	p.gather() // what has changed meanwhile
}

// giveBack releases the present record if the member is asked to, and leads nothing, and publishes again. A lock
// server that drains asks all holders, and takes no request: the member's terms end, too, and the next record is
// published through the next server, which the client asks once it holds nothing of this one.
func (p *publisher) giveBack() {
	if p.present != nil && p.present == p.revoked && !p.leaving && !p.member.machine.LeadsAny() {
		p.drop(p.present)
		p.present, p.number = nil, 0
		p.again(0)
	}
}

// onRefused sets a timer for the record once more, unless the error is final.
func (p *publisher) onRefused(err error) {
	if !campaign.IsTemporary(err) {
		p.member.leaveFor(err)
		return
	}
	pause := campaign.Pause(p.failed)
	p.failed++
	p.member.Manager.Log.Warn("member of a group cannot publish what it leads, and tries again", "path", p.member.Path, "error", err, "after", pause)
	p.again(pause)
}

// again publishes after a pause, if nothing is published yet.
func (p *publisher) again(pause time.Duration) {
	if !p.leaving && p.next == nil {
		p.gathers = true
		p.dueAfter(pause, true)
	}
}

// leave takes the member off the list. It is the last thing that the member does. The node of a record that is on
// its way is awaited, too: others would see a member that has left.
func (p *publisher) leave() {
	p.leaving = true
	p.drop(p.present)
	p.drop(p.next)
	p.present, p.next = nil, nil
	p.finishIfLeft()
}

// drop takes a record off the list, unless it is nil.
func (p *publisher) drop(r *lockRequest) {
	switch {
	case r == nil:
		return
	case r.granted:
		r.release()
	default:
		r.withdraw()
	}
	p.releases++
}

// finishIfLeft ends the member once it has left the list.
func (p *publisher) finishIfLeft() {
	if p.leaving && p.releases == 0 {
		p.member.finish()
		p.member.self.Stop()
	}
}
