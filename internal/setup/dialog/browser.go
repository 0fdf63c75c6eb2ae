package dialog

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/setup"
)

// obtain has a service give the values to a browser: on this machine by a page that is
// served as long as it takes, and from another one by the address that it ends at.
func (d *Dialog) obtain(ctx context.Context, w setup.Way, typed map[string]string) (values map[string]string, next string, err error) {
	visit, err := openVisit(ctx, w.Obtain, typed)
	if err != nil {
		d.say("✖ %s\n", fault.Public(err))
		return nil, "", d.afterBad(ctx)
	}
	defer visit.close()
	d.say("  Open this in a browser on this machine:\n\n  %s\n\n", visit.address())
	for {
		query, err := d.comesBack(ctx, visit)
		if err != nil {
			return nil, "", err
		}
		values, next, err = d.exchange(ctx, w.Obtain, query)
		switch {
		case err == nil:
			return values, next, nil
		case ctx.Err() != nil:
			return nil, "", ctx.Err()
		}
		d.say("✖ %s\n", fault.Public(err))
	}
}

// exchangeWithin bounds how long a service may take to give its values.
const exchangeWithin = 30 * time.Second

// exchange goes on for a person who has gone: a code works once, and what it was exchanged
// for is given only to whoever waits for it.
func (d *Dialog) exchange(ctx context.Context, o *setup.Obtain, query url.Values) (values map[string]string, next string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchangeWithin)
	defer cancel()
	return o.Exchange(ctx, query)
}

// comesBack waits for the browser, or for the address that it ended at elsewhere.
func (d *Dialog) comesBack(ctx context.Context, v *visit) (url.Values, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	came := make(chan url.Values, 1)
	go func() {
		defer cancel()
		select {
		case query := <-v.back:
			came <- query
		case <-waiting.Done():
		}
	}()
	for {
		answer, err := d.Screen.Line(waiting, "Waiting for the browser. If it is on another machine, paste the address that it ends at; s to skip: ")
		select {
		case query := <-came:
			d.say("\n")
			return query, nil
		default:
		}
		answer = strings.TrimSpace(answer)
		if strings.EqualFold(answer, "s") && err == nil {
			return nil, errSkip
		}
		if err != nil {
			if errors.Is(err, io.EOF) { // nobody types; the browser may still come
				select {
				case query := <-came:
					return query, nil
				case <-time.After(pipeWait):
				case <-ctx.Done():
				}
			}
			return nil, err
		}
		u, bad := url.Parse(answer)
		if bad == nil && v.isOurs(u.Query().Get("state")) {
			return u.Query(), nil
		}
		d.say("✖ That is not the address: it begins with %s and has a code in it.\n", v.backAddress())
	}
}

// pipeWait is how long a browser is waited for when nobody can paste anything.
const pipeWait = 10 * time.Minute

// visit is a small server for one person's browser.
type visit struct {
	state  string
	host   string
	back   chan url.Values
	server *http.Server
}

// openVisit serves the form of o on a free port of this machine.
func openVisit(ctx context.Context, o *setup.Obtain, typed map[string]string) (*visit, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "listen on a port of this machine")
	}
	v := &visit{state: rand.Text(), host: l.Addr().String(), back: make(chan url.Values, 1)}
	form, err := o.Form(typed, v.backAddress(), v.state)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /start", func(w http.ResponseWriter, r *http.Request) {
		if v.guard(w, r) {
			writePage(w, form)
		}
	})
	mux.HandleFunc("GET /back", func(w http.ResponseWriter, r *http.Request) {
		if !v.guard(w, r) {
			return
		}
		select {
		case v.back <- r.URL.Query():
		default: // a page that was loaded again
		}
		write(w, html.Tag("p", "Done. Go back to the terminal."))
	})
	v.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	go v.server.Serve(l) //nolint:errcheck // until close
	return v, nil
}

func (v *visit) close() { _ = v.server.Close() }

// address is where the person begins. Who cannot see it cannot make use of the page.
func (v *visit) address() string { return "http://" + v.host + "/start?state=" + v.state }

func (v *visit) backAddress() string { return "http://" + v.host + "/back" }

func (v *visit) isOurs(state string) bool {
	return subtle.ConstantTimeCompare([]byte(state), []byte(v.state)) == 1
}

// guard refuses pages of others that reach this port through the person's browser.
func (v *visit) guard(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "origin")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Host != v.host || !v.isOurs(r.URL.Query().Get("state")) {
		http.Error(w, "This address is not complete: copy the whole of it from the terminal.", http.StatusForbidden)
		return false
	}
	return true
}

// writePage shows the form as one button.
func writePage(w http.ResponseWriter, form setup.Form) {
	host := form.Action
	if u, err := url.Parse(form.Action); err == nil {
		host = u.Host
	}
	write(w, html.El("form", html.Attr("method", "post"), html.Attr("action", form.Action),
		html.Map(slices.Sorted(maps.Keys(form.Fields)), func(name string) html.Node {
			return html.El("input", html.Attr("type", "hidden"), html.Attr("name", name), html.Attr("value", form.Fields[name]))
		}),
		html.Tag("button", "Continue to "+host)))
}

// write sends a page.
func write(w http.ResponseWriter, body html.Node) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	_ = html.Write(w, html.El("html", html.Attr("lang", "en"),
		html.El("head", html.El("meta", html.Attr("name", "viewport"), html.Attr("content", "width=device-width")), html.Tag("title", "Remote Agent")),
		html.El("body", html.Tag("h1", "Remote Agent"), body))) // the browser may be gone
}
