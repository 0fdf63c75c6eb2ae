package pages

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
)

// together is how often a page that many have open is made again, at most: who asks for it
// meanwhile gets the next one.
const together = 200 * time.Millisecond

// sharedPages makes a page once for all who see the same and ask for it at about the same
// time, as open pages do when something has changed. The zero value is ready for use.
type sharedPages struct {
	mu sync.Mutex // guards what follows
	of map[string]*sharedPage
}

type sharedPage struct {
	next *making // who asks joins it; nil: there is none
	last time.Time
}

// making is a page that is not made yet. What it shows is from after everybody had asked.
type making struct {
	done chan struct{} // closed when the rest is set
	page []byte
	err  error
}

// get returns what page returns, which is called for all who see the same at once.
func (s *sharedPages) get(ctx context.Context, who string, page func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	s.mu.Lock()
	if s.of == nil {
		s.of = make(map[string]*sharedPage)
	}
	if s.of[who] == nil {
		s.of[who] = &sharedPage{}
	}
	of := s.of[who]
	if m := of.next; m != nil {
		s.mu.Unlock()
		select {
		case <-m.done:
			return m.page, m.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	m := &making{done: make(chan struct{}), err: fault.New(fault.Internal, "")} // which a panic leaves
	of.next = m
	wait := time.Until(of.last.Add(together))
	s.mu.Unlock()

	defer close(m.done)
	if wait > 0 {
		<-time.After(wait) // others rely on it, so it does not end with ctx
	}
	s.mu.Lock()
	of.next, of.last = nil, time.Now()
	s.mu.Unlock()
	m.page, m.err = page(context.WithoutCancel(ctx))
	return m.page, m.err
}

// share answers with a part of a page that is the same wherever an account has it open, but
// for what its forms are signed with. Another owner's is not the same: it has what only they
// whispered.
func (p *Pages) share(w http.ResponseWriter, r *request, show func(r *request) (view, error)) error {
	page, err := p.together.get(r.Context(), r.actor()+" "+string(r.role), func(ctx context.Context) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, pagePatience)
		defer cancel()
		all := *r
		all.Request, all.token = r.WithContext(ctx), p.anybody
		at := p.frame.position()
		v, err := show(&all)
		if err != nil {
			return nil, err
		}
		v.at = at
		var out bytes.Buffer
		err = html.Write(&out, p.frame.part(&all, v))
		return out.Bytes(), err
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	anybody, own := []byte(formToken(p.anybody)), []byte(formToken(r.token))
	for { // without a copy for each who asks
		part, rest, more := bytes.Cut(page, anybody)
		if _, err := w.Write(part); err != nil || !more {
			return nil //nolint:nilerr // a browser that left needs no answer
		}
		_, _ = w.Write(own)
		page = rest
	}
}
