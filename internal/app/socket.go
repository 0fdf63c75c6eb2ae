package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/localsocket"
	"remote-agent/internal/platform/console"
)

// socketPath is where programs of the same user reach the daemon.
func socketPath(cfg config.Config) string {
	path, err := filepath.Abs(filepath.Join(cfg.DataDir, "bot.sock"))
	if err != nil {
		return filepath.Join(cfg.DataDir, "bot.sock")
	}
	return path
}

// listenLocally opens the socket. Without one everything else works.
func (d *daemon) listenLocally(ctx context.Context) net.Listener {
	l, err := localsocket.Listen(ctx, socketPath(d.config))
	switch {
	case err == nil:
		return l
	case fault.Is(err, fault.Unsupported):
		d.log.InfoContext(ctx, "there is no local socket", "reason", fault.Public(err))
	default:
		d.log.WarnContext(ctx, "there is no local socket: bot chat and other commands cannot reach this process", "reason", fault.Public(err), "err", err)
	}
	return nil
}

// local is what the socket serves.
func (d *daemon) local() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/console/", console.Handler(d.platforms.console))
	mux.HandleFunc("POST /calls/{name}", d.serveCall)
	mux.HandleFunc("POST /configuration", d.retakes.serve)
	return mux
}

// Running returns the console of the daemon that runs on the data directory of cfg, or
// nil if none does. Any other error says why it cannot be reached.
func Running(ctx context.Context, cfg config.Config) (console.Backend, error) {
	c := console.Client{HTTP: localsocket.Client(socketPath(cfg))}
	if _, err := c.Commands(ctx); err != nil {
		if errors.Is(err, localsocket.ErrNobody) {
			return nil, nil
		}
		return nil, err
	}
	return c, nil
}
