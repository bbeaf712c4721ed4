package manager

// SetClosed sets what Close sets before it stops the actors.
func (m *Manager) SetClosed() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

// HoldMessages has the actors hear nothing of the session until the call of pass.
func (m *Manager) HoldMessages() (pass func()) {
	m.mu.Lock()
	return m.mu.Unlock
}
