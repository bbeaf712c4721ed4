package manager

import "slices"

// The clients of a lock server are programs of their own. They may want other settings for a path than
// the program of the server, and than each other: in a rolling deployment that changes the permits of a
// semaphore, say. With sessions of their own they would be served, so they are served here: each recipe
// of a path has an actor of its own.
//
// Two actors on one path stand to each other as those of two processes, though their nodes belong to
// one session:
//
//   - Exclusion is by the nodes. An actor knows its own nodes by the incarnation in their names, never
//     by the session. It takes all others for contenders of another process, which may come at any
//     time: it waits for them, and hands a lock on within itself only if no number between two of its
//     nodes may hide one of theirs.
//   - What an actor assumes of a directory, it has learned from the answers to its own requests, or
//     from a watch of its own. The writer keeps the creates of a directory in the order of their
//     arrival, whoever sends them; nothing more than that is asked for by one actor of another.
//   - Re-entry is by owner within one actor. An owner that asks by two recipes waits for itself, as
//     two processes of one program would.
//   - Tokens increase in the order of the queue: by czxid, and within one transaction by step, the
//     place among its nodes. A grant by a local queue has a step of its own, which is below that of
//     the next node of the transaction: see lockActor.answer.
//
// A session that is lost takes the nodes of all of them.

// servedEntries are the entries of one path, by the names of their recipes. Multi-locks of one name may
// differ in the settings of their members.
type servedEntries map[string][]*Entry

// FindServed is Find for a client of a lock server: other settings of a path in use do no harm.
func (m *Manager) FindServed(path string, recipe *Recipe) (*Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.getServed(path, recipe)
}

// getServed needs m.mu.
func (m *Manager) getServed(path string, recipe *Recipe) (*Entry, error) {
	// First the one that clients may wait in already: in another they would overtake each other.
	here := m.served[path][recipe.Name]
	if e := m.entries[path]; e != nil && e.Path == path {
		here = append(slices.Clip(here), e)
	}
	if i := slices.IndexFunc(here, func(e *Entry) bool { return e.Recipe.same(recipe) }); i >= 0 && !m.closed {
		return here[i], nil
	}
	e, err := m.newEntry(path, recipe)
	if err != nil {
		return nil, err
	}
	e.served = true
	if err := m.addDependencies(e, m.getServed); err != nil {
		return nil, err
	}
	if m.served[path] == nil {
		m.served[path] = servedEntries{}
	}
	m.served[path][recipe.Name] = append(m.served[path][recipe.Name], e)
	m.start(e)
	return e, nil
}

// forgetServed needs m.mu.
func (m *Manager) forgetServed(e *Entry) {
	all := m.served[e.Path]
	all[e.Recipe.Name] = slices.DeleteFunc(all[e.Recipe.Name], func(other *Entry) bool { return other == e })
	if len(all[e.Recipe.Name]) == 0 {
		delete(all, e.Recipe.Name)
	}
	if len(all) == 0 {
		delete(m.served, e.Path)
	}
}
