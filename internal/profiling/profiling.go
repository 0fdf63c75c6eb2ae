// Package profiling shows an operator what the running process is busy with.
package profiling

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"time"

	"remote-agent/internal/fault"
)

// sampling is how many bytes are allocated between two samples of the profile of
// memory, Go's default.
const sampling = 512 << 10

// SampleMemory turns the profile of memory on. The program starts without it, for it
// costs memory itself; what was allocated before is not in it.
func SampleMemory() { runtime.MemProfileRate = sampling }

// Listen serves Go's profiles under /debug/pprof/ on addr, host:port, until stop is
// called, and returns the address with the port that was chosen. They hold names of
// functions and the command line, and a request makes the process work, so only a
// loopback address is taken, and only requests that name one. Anything else about
// addr is fault.Invalid.
func Listen(ctx context.Context, addr string) (at string, stop func() error, err error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || !isLoopback(host) {
		return "", nil, fault.Newf(fault.Invalid, "--pprof-addr: %q is not valid; use a loopback address, such as 127.0.0.1:6060.", addr)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return "", nil, &fault.Error{Kind: fault.Invalid, Err: err, Public: "--pprof-addr: cannot listen on " + addr + "; choose another port."}
	}
	SampleMemory()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: local(mux), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	return listener.Addr().String(), func() error {
		err := server.Close()
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// local refuses requests for another name, as a web page elsewhere could have a
// browser on this machine send.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !isLoopback(host) {
			http.Error(w, "only for this machine", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
