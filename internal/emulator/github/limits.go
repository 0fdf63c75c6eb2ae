package github

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// Limits are how fast the bot may call. Zero is what GitHub publishes, a
// negative number no limit.
type Limits struct {
	PerHour          int // calls; 5000
	PointsPerMinute  int // 1 for reading and 5 for writing; 900
	ContentPerMinute int // calls that create content; 80
	ContentPerHour   int // 500

	// Status of the answer above a secondary limit, 403 (default) or 429, and
	// whether it comes without Retry-After.
	Status       int
	NoRetryAfter bool
}

func (l Limits) withDefaults() Limits {
	l.PerHour = cmp.Or(l.PerHour, 5000)
	l.PointsPerMinute = cmp.Or(l.PointsPerMinute, 900)
	l.ContentPerMinute = cmp.Or(l.ContentPerMinute, 80)
	l.ContentPerHour = cmp.Or(l.ContentPerHour, 500)
	l.Status = cmp.Or(l.Status, http.StatusForbidden)
	return l
}

// NoLimits lets the bot call as fast as it can.
func NoLimits() *Limits {
	return &Limits{PerHour: -1, PointsPerMinute: -1, ContentPerMinute: -1, ContentPerHour: -1}
}

// Violation is something that the real GitHub may punish later and does not
// refuse at once.
type Violation struct {
	Operation string
	Text      string
	At        time.Time
}

// Violations returns what the bot should not have done, in order.
func (s *Server) Violations() []Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

type pacing struct {
	byWho map[string]*paceState
	until time.Time // calls before it ignore a Retry-After
}

// paceState is what one caller did.
type paceState struct {
	windowEnds time.Time // of the primary limit
	used       int
	points     []pointsAt
	content    []time.Time // of the last hour
}

type pointsAt struct {
	at     time.Time
	points int
}

// rate is the state of the primary limit, for the headers.
type rate struct {
	limit, used int
	reset       time.Time
}

// paceCall counts a call and refuses it above a limit. The lock must be held.
func (s *Server) paceCall(r *request, call *Call) (rate, *apiError) {
	now := s.opts.Now()
	p := s.pace.byWho[call.As]
	if p == nil {
		p = &paceState{}
		s.pace.byWho[call.As] = p
	}
	if !now.Before(p.windowEnds) {
		p.windowEnds, p.used = now.Add(time.Hour), 0
	}
	limit := rate{limit: s.limits.PerHour, used: p.used, reset: p.windowEnds}
	if limit.limit < 0 {
		limit.limit = 1 << 30
	}
	if now.Before(s.pace.until) {
		s.problems = append(s.problems, Violation{Operation: call.Operation, Text: "called before the time of Retry-After was over", At: now})
	}
	if call.Operation == "rate-limit/get" {
		return limit, nil
	}
	if p.used >= limit.limit {
		return limit, primaryLimit(call.As)
	}
	p.used++
	limit.used = p.used
	if s.tooFast(p, r, now) {
		wait := time.Minute
		if s.limits.NoRetryAfter {
			wait = 0
		} else {
			s.pace.until = now.Add(wait)
		}
		return limit, secondaryLimit(s.limits.Status, wait)
	}
	return limit, nil
}

// uncount takes back what an answer of 304 did not cost.
func (s *Server) uncount(as string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pace.byWho[as]; p != nil && p.used > 0 {
		p.used--
	}
}

// tooFast counts a call for the secondary limits and reports whether it is above
// one of them.
func (s *Server) tooFast(p *paceState, r *request, now time.Time) bool {
	points := 1
	if r.http.Method != http.MethodGet && r.http.Method != http.MethodHead {
		points = 5
	}
	p.points = slices.DeleteFunc(p.points, func(e pointsAt) bool { return now.Sub(e.at) >= time.Minute })
	sum := points
	for _, e := range p.points {
		sum += e.points
	}
	if s.limits.PointsPerMinute >= 0 && sum > s.limits.PointsPerMinute {
		return true
	}
	p.points = append(p.points, pointsAt{now, points})
	if r.route == nil || !r.route.content {
		return false
	}
	p.content = slices.DeleteFunc(p.content, func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	minute := 0
	for _, at := range p.content {
		if now.Sub(at) < time.Minute {
			minute++
		}
	}
	if s.limits.ContentPerMinute >= 0 && minute >= s.limits.ContentPerMinute ||
		s.limits.ContentPerHour >= 0 && len(p.content) >= s.limits.ContentPerHour {
		return true
	}
	p.content = append(p.content, now)
	return false
}
