package requests

import "sync"

// EffectList is a list of effects. The zero EffectList is empty. Most lists are empty between the
// messages of an actor, so the lists of a process share their memory: Performed passes it on.
type EffectList struct{ list *[]Effect } // nil for a list without memory

var effectLists = sync.Pool{New: func() any { return &[]Effect{} }}

// Add adds an effect of a request, and returns it for the other fields, until the next Add. (It is
// made in its place: to pass it by value takes four times as long.)
func (l *EffectList) Add(kind EffectKind, id ID) *Effect {
	if l.list == nil {
		l.list = effectLists.Get().(*[]Effect)
	}
	*l.list = append(*l.list, Effect{Kind: kind, ID: id})
	return &(*l.list)[len(*l.list)-1]
}

// Refuse adds a Refuse.
func (l *EffectList) Refuse(id ID, why Reason) { l.Add(Refuse, id).Reason = why }

// Effects returns what was added since the last call, in order. The slice is valid until the next
// Add.
func (l *EffectList) Effects() []Effect {
	if l.list == nil {
		return nil
	}
	list := *l.list
	*l.list = list[:0]
	return list
}

// Append adds a copy of an effect.
func (l *EffectList) Append(f Effect) { *l.Add(f.Kind, f.ID) = f }

// Len returns how many effects were added since Effects or Performed was last called.
func (l *EffectList) Len() int {
	if l.list == nil {
		return 0
	}
	return len(*l.list)
}

// At returns effect i of Len.
func (l *EffectList) At(i int) Effect { return (*l.list)[i] }

// Performed empties the list, and passes its memory on to other lists. It ends the validity of the
// slice that Effects has returned.
func (l *EffectList) Performed() {
	if list := l.list; list != nil && cap(*list) <= maxSharedEffects {
		clear((*list)[:cap(*list)])
		*list = (*list)[:0]
		effectLists.Put(list)
	}
	l.list = nil
}

// maxSharedEffects bounds the memory of an EffectList that others use again.
const maxSharedEffects = 64
