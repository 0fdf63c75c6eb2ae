package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"
)

// healthTimeout is shorter than the timeout that container runtimes give.
const healthTimeout = 2 * time.Second

// Healthy asks the daemon that listens on addr, host:port, whether it is up. It returns
// nil if so, and takes two seconds at most.
func Healthy(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	url := "http://" + reachable(addr) + "/healthz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	// A proxy that the environment names is not for this machine's own server.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("no daemon answers at LISTEN_ADDR: %w", err)
	}
	_ = response.Body.Close() // the status says it all
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("daemon at %s is not healthy: status %d", url, response.StatusCode)
	}
	return nil
}

// Listens reports whether addr can be listened on, now, or has a daemon that listens there
// already. The error is that of Server.Listen.
func Listens(ctx context.Context, addr string) (already bool, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err == nil {
		_ = listener.Close() // nobody has connected
		return false, nil
	}
	if errors.Is(err, syscall.EADDRINUSE) && Healthy(ctx, addr) == nil {
		return true, nil
	}
	return false, listenFault(addr, err)
}

// reachable turns an address to listen on into one to connect to: all
// interfaces include the loopback one.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	switch ip := net.ParseIP(host); {
	case host == "":
		host = "localhost"
	case ip == nil || !ip.IsUnspecified():
	case ip.To4() != nil:
		host = "127.0.0.1"
	default:
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
