// Package profiling shows an operator what the running process is busy with.
package profiling

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/fault"
)

// sampling is how many bytes are allocated between two samples of the profile of
// memory, Go's default.
const sampling = 512 << 10

// SampleMemory turns the profile of memory on. The program starts without it, for it
// costs memory itself; what was allocated before is not in it. Safe for concurrent use.
func SampleMemory() { sampleOnce() }

// sampleOnce writes the rate once: Go's runtime reads it without a lock.
var sampleOnce = sync.OnceFunc(func() { runtime.MemProfileRate = sampling })

// longest is for how long a profile is recorded at most.
const longest = 10 * time.Minute

// Listen serves Go's profiles under /debug/pprof/NAME on addr, host:port, as go tool pprof
// and go tool trace read them, until stop is called, and returns the address with the port that was chosen. They hold names of
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
	mux.HandleFunc("GET /debug/pprof/{$}", list)
	mux.HandleFunc("GET /debug/pprof/{name}", show)
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

// names returns what can be asked for.
func names() []string {
	all := []string{"profile", "trace"}
	for _, p := range pprof.Profiles() {
		all = append(all, p.Name())
	}
	return all
}

func list(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, strings.Join(names(), "\n")+"\n") // who asked may be gone
}

// show serves a profile by its name. net/http/pprof does so as well, and computes
// differences of profiles, which costs the program 150 KB.
func show(w http.ResponseWriter, r *http.Request) {
	switch name := r.PathValue("name"); name {
	case "profile":
		record(w, r, pprof.StartCPUProfile, pprof.StopCPUProfile)
	case "trace":
		record(w, r, trace.Start, trace.Stop)
	default:
		p := pprof.Lookup(name)
		if p == nil {
			http.Error(w, "no such profile; there are "+strings.Join(names(), ", "), http.StatusNotFound)
			return
		}
		debug, err := strconv.Atoi(cmp.Or(r.FormValue("debug"), "0"))
		if err != nil {
			http.Error(w, "debug has to be a number", http.StatusBadRequest)
			return
		}
		if debug == 0 {
			w.Header().Set("Content-Type", "application/octet-stream")
		}
		_ = p.WriteTo(w, debug) // who asked is gone
	}
}

// record writes what comes between start and stop, for as long as the request says.
func record(w http.ResponseWriter, r *http.Request, start func(io.Writer) error, stop func()) {
	seconds, err := strconv.ParseFloat(cmp.Or(r.FormValue("seconds"), "30"), 64)
	if err != nil || !(seconds > 0 && seconds <= longest.Seconds()) {
		http.Error(w, "seconds has to be a number above 0 and up to 600", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := start(w); err != nil {
		http.Error(w, "it is being recorded already: "+err.Error(), http.StatusConflict)
		return
	}
	defer stop()
	end := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	defer end.Stop()
	select {
	case <-end.C:
	case <-r.Context().Done():
	}
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
