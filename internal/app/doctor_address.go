package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	"remote-agent/internal/doctor"
	"remote-agent/internal/platform"
	"remote-agent/internal/web"
)

// examineListen finds out whether the daemon could listen, or does: the one of this DATA_DIR,
// as far as that can be told.
func (e *examination) examineListen(ctx context.Context) []doctor.Finding {
	already, err := web.Listens(ctx, e.config.ListenAddr)
	if err != nil {
		fix := "set LISTEN_ADDR to an address of this machine"
		if errors.Is(err, syscall.EADDRINUSE) {
			fix = "ss -ltnp shows which program listens where"
		}
		return one(doctor.Failed("LISTEN_ADDR", err, fix))
	}
	status, said, fix := doctor.OK, " is free", ""
	if already {
		said = ": the daemon answers"
		if here, err := Running(ctx, e.config); here == nil && err == nil && e.env.daemon == nil {
			status, said = doctor.Warn, ": a bot answers, but none runs on "+e.config.DataDir
			fix = "stop that bot, or set LISTEN_ADDR to another port; if it is this one, set DATA_DIR to its folder"
		}
	}
	return one(doctor.Found("LISTEN_ADDR", status, e.config.ListenAddr+said, fix))
}

// examineAddress asks the daemon under the address that the internet knows it by.
func (e *examination) examineAddress(ctx context.Context) []doctor.Finding {
	if e.config.PublicURL == "" {
		for _, k := range kindsOf(e.config) {
			if k.On() && k.Intake() == platform.OverHTTP { // no fault: a proxy may have the address that was given there
				return one(doctor.Found("PUBLIC_URL", doctor.Skip, "not set, so nothing was asked at the address where events of "+string(k.Platform())+" come in", ""))
			}
		}
		return one(doctor.Found("PUBLIC_URL", doctor.Skip, "not set; webhooks and web pages from elsewhere need it", ""))
	}
	failed := func(why string) []doctor.Finding {
		return one(doctor.Found("PUBLIC_URL", doctor.Fail, why, "start the daemon, and make the proxy forward PUBLIC_URL to LISTEN_ADDR"))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.config.PublicURL+"/healthz", http.NoBody)
	if err != nil {
		return failed("is not a valid address")
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return failed("nothing answers at " + req.URL.Host)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return failed(fmt.Sprintf("%s/healthz answers %d", req.URL.Host, resp.StatusCode))
	}
	found := one(doctor.Found("PUBLIC_URL", doctor.OK, req.URL.Host+" reaches the daemon", ""))
	return append(found, examineStream(client, req))
}

// examineStream finds out whether what stands in front of the daemon holds back what pages
// that are open wait for: the answer comes in two parts with a pause between. req is one for
// /healthz that was answered.
func examineStream(client *http.Client, req *http.Request) doctor.Finding {
	unknown := func(why string) doctor.Finding { return doctor.Found("stream", doctor.Skip, why, "") }
	req.URL.Path = strings.TrimSuffix(req.URL.Path, "/healthz") + web.StreamPath
	resp, err := client.Do(req)
	if err != nil {
		return unknown("nothing answers anymore at " + req.URL.Host)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode != http.StatusOK {
		return unknown(fmt.Sprintf("%s%s answers %d", req.URL.Host, web.StreamPath, resp.StatusCode))
	}
	_, err = io.ReadFull(resp.Body, make([]byte, 1))
	began := time.Now()
	if err == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<10))
	}
	if err != nil {
		return unknown("the answer was cut off")
	}
	if time.Since(began) < web.StreamPause/4 {
		return doctor.Found("stream", doctor.Warn, "the proxy buffers responses: open pages update late, or not at all",
			"turn off its response buffering, such as with proxy_buffering off; in nginx")
	}
	return doctor.Found("stream", doctor.OK, "answers come through as they are written", "")
}
