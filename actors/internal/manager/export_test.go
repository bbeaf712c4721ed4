package manager

// SetClosed sets what Close sets before it stops the actors.
func (m *Manager) SetClosed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}
