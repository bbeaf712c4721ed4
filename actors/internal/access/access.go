// Package access finds what an actors.Locks hides from programs, for the other packages of this module.
package access

import "github.com/actorlock/actorlock/actors/internal/manager"

// Locks is an *actors.Locks, and no other type.
type Locks interface{ managedBy() *manager.Manager }

// Managed makes a type that embeds it one of Locks.
type Managed struct{ by *manager.Manager }

// ManagedBy returns what Locks of the manager embed.
func ManagedBy(m *manager.Manager) Managed { return Managed{m} }

func (m Managed) managedBy() *manager.Manager { return m.by }

// Manager returns the manager of Locks.
func Manager(l Locks) *manager.Manager { return l.managedBy() }
