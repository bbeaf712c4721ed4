package shell

// SetClosed has the manager take itself for closed, before it stops its actors.
func (m *Manager) SetClosed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}
