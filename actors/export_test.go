package actors

import "github.com/actorlock/actorlock/gen/ask"

// LockRecipient is the lock's actor.
func LockRecipient(m *Mutex) ask.Recipient {
	l, err := m.resident()
	if err != nil {
		panic(err)
	}
	return l.self
}
