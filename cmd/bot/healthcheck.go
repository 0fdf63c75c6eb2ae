package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// healthTimeout is shorter than the timeout that container runtimes give.
const healthTimeout = 2 * time.Second

type healthcheckCommand struct{}

// Run implements the command.
func (healthcheckCommand) Run(p *program) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(p.ctx, healthTimeout)
	defer cancel()
	url := "http://" + reachable(cfg.ListenAddr) + "/healthz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
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
