package web

import (
	"log/slog"
	"net"
)

// Doorway returns Accept of a listener behind a doorway.
func Doorway(limit int, log *slog.Logger, l net.Listener) func() (net.Conn, error) {
	return newDoorway(limit, log).before(l).Accept
}
