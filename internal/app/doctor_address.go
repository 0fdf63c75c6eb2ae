package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"remote-agent/internal/doctor"
	"remote-agent/internal/web"
)

// examineListen finds out whether the daemon could listen, or does.
func (e *examination) examineListen(ctx context.Context) []doctor.Finding {
	already, err := web.Listens(ctx, e.config.ListenAddr)
	switch {
	case err != nil:
		return one(doctor.Failed("LISTEN_ADDR", err, "ss -ltnp shows which program listens where"))
	case already:
		return one(doctor.Found("LISTEN_ADDR", doctor.OK, "the daemon answers at "+e.config.ListenAddr, ""))
	}
	return one(doctor.Found("LISTEN_ADDR", doctor.OK, e.config.ListenAddr+" is free", ""))
}

// examineAddress asks the daemon under the address that the internet knows it by.
func (e *examination) examineAddress(ctx context.Context) []doctor.Finding {
	if e.config.PublicURL == "" {
		return one(doctor.Found("PUBLIC_URL", doctor.Skip, "not set; webhooks and web pages from elsewhere need it", ""))
	}
	const fix = "start the daemon, and make the proxy forward PUBLIC_URL to LISTEN_ADDR"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.config.PublicURL+"/healthz", http.NoBody)
	if err != nil {
		return one(doctor.Found("PUBLIC_URL", doctor.Fail, "is not a valid address", fix))
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return one(doctor.Found("PUBLIC_URL", doctor.Fail, "nothing answers at "+req.URL.Host, fix))
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return one(doctor.Found("PUBLIC_URL", doctor.Fail, fmt.Sprintf("%s/healthz answers %d", req.URL.Host, resp.StatusCode), fix))
	}
	found := one(doctor.Found("PUBLIC_URL", doctor.OK, req.URL.Host+" reaches the daemon", ""))
	return append(found, examineStream(ctx, client, e.config.PublicURL))
}

// examineStream finds out whether what stands in front of the daemon holds back what pages
// that are open wait for: the answer comes in two parts with a pause between.
func examineStream(ctx context.Context, client *http.Client, publicURL string) doctor.Finding {
	unknown := func(why string) doctor.Finding { return doctor.Found("stream", doctor.Skip, why, "") }
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, publicURL+web.StreamPath, http.NoBody)
	if err != nil {
		return unknown("is not a valid address")
	}
	resp, err := client.Do(req)
	if err != nil {
		return unknown("nothing answers any more at " + req.URL.Host)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode != http.StatusOK {
		return unknown(fmt.Sprintf("%s%s answers %d", req.URL.Host, web.StreamPath, resp.StatusCode))
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		return unknown("the answer was cut off")
	}
	began := time.Now()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<10)); err != nil {
		return unknown("the answer was cut off")
	}
	if time.Since(began) < web.StreamPause/4 {
		return doctor.Found("stream", doctor.Warn, "the proxy holds answers back: pages that are open change late, or not at all",
			"switch its buffering of responses off, such as by proxy_buffering off; in nginx")
	}
	return doctor.Found("stream", doctor.OK, "answers come through as they are written", "")
}
