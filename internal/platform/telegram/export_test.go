package telegram

// CloseIdle ends idle connections, so that tests that never call Run leave no
// goroutines behind.
func (a *Adapter) CloseIdle() { a.client.http.CloseIdleConnections() }
