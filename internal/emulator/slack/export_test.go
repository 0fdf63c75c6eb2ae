package slack

// Connections returns how many Socket Mode connections are open.
func (s *Sockets) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
