package requests

// EffectKind is what an Effect asks for.
type EffectKind uint8

// The effects for the owner of a request, or for the machine on top that has made the request: there
// they are news.
const (
	// Grant: request ID holds the lock with the Token, by Node. (Of a local queue: by the request
	// By below it. Of a semaphore: by the nodes of the effects NoteNode before.)
	Grant EffectKind = iota
	// Refuse: request ID ends without the lock, or its release fails, because of Reason.
	Refuse
	// Lose: request ID holds the lock no longer, because of Reason.
	Lose
	// ConfirmRelease: the release of request ID is done. StillHeld other requests of its owner hold
	// the lock yet.
	ConfirmRelease
	// RequestRevoke: another client asks request ID, which holds the lock, to release it. A request
	// may get several.
	RequestRevoke
	// NotifyContended: contenders of other processes may wait for what request ID holds.
	NotifyContended
)

// The other effects of a machine on top of others: for the machine number Below, or for its actor.
const (
	// AcquireBelow: begin the Request, which has ID. Each such request ends by a Refuse, a Lose or
	// a ConfirmRelease. A semaphore makes it for the owner's request By. More reports that the next
	// effect is one, too, and that one transaction is to make the nodes of both if they fit into one.
	AcquireBelow EffectKind = iota + NotifyContended + 1
	// CancelBelow: withdraw request ID, or take back what it was granted, also if it is lost.
	CancelBelow
	// ReleaseBelow: take back what request ID was granted. ConfirmRelease or Refuse answers it, also
	// if it is lost.
	ReleaseBelow
	// NoteNode: grants that follow are by the Node of request ID below, which has the Token. First
	// reports that the node hold of a local queue begins with it: TimeBudgetUsed must be called once
	// that has lasted as long as it may.
	NoteNode
	// StartIdleTimer: a local queue's IdleTimedOut must be called when the node hold may have been
	// unused for long.
	StartIdleTimer
	// ReportTurn: request ID, of a multi-lock, has passed the request queue of a semaphore, whose
	// Proceed must be called once the multi-lock has passed those of all its semaphores.
	ReportTurn
)

var effectNames = [...]string{"Grant", "Refuse", "Lose", "ConfirmRelease", "RequestRevoke", "NotifyContended",
	"AcquireBelow", "CancelBelow", "ReleaseBelow", "NoteNode", "StartIdleTimer", "ReportTurn"}

// String returns the name of the constant.
func (k EffectKind) String() string { return effectNames[k] }

// Effect is one thing to do because of an event. Its Kind says which fields count.
type Effect struct {
	Kind      EffectKind
	Reason    Reason
	First     bool
	More      bool
	Below     uint8
	StillHeld int
	ID        ID
	By        ID
	Token     Token
	Node      string
	Request   *Incoming
}

// EffectList holds the effects of a machine, which embeds it.
type EffectList struct{ list []Effect }

// Add adds an effect of a request, and returns it for the other fields, until the next Add. (It is
// made in its place: to pass it by value takes four times as long.)
func (l *EffectList) Add(kind EffectKind, id ID) *Effect {
	l.list = append(l.list, Effect{})
	f := &l.list[len(l.list)-1]
	f.Kind, f.ID = kind, id
	return f
}

// Refuse adds a Refuse.
func (l *EffectList) Refuse(id ID, why Reason) { l.Add(Refuse, id).Reason = why }

// Effects returns what was added since the last call, in order. The slice is valid until the next
// Add.
func (l *EffectList) Effects() []Effect {
	list := l.list
	l.list = list[:0]
	return list
}
