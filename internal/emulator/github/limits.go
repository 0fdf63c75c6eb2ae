package github

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Limits are how fast the bot may call. Zero is what GitHub publishes, a
// negative number no limit.
type Limits struct {
	PerHour          int // calls; 5000
	PointsPerMinute  int // 1 for reading and 5 for writing; 900
	ContentPerMinute int // calls that create content; 80
	ContentPerHour   int // 500
}

func (l Limits) withDefaults() Limits {
	l.PerHour = cmp.Or(l.PerHour, 5000)
	l.PointsPerMinute = cmp.Or(l.PointsPerMinute, 900)
	l.ContentPerMinute = cmp.Or(l.ContentPerMinute, 80)
	l.ContentPerHour = cmp.Or(l.ContentPerHour, 500)
	return l
}

// unlimited is a primary limit that nobody reaches.
const unlimited = 1 << 30

// NoLimits lets the bot call as fast as it can, and tells it so, as GitHub Enterprise
// Server does.
func NoLimits() *Limits {
	return &Limits{PerHour: -1, PointsPerMinute: -1, ContentPerMinute: -1, ContentPerHour: -1}
}

// Violations returns what the bot should not have done, in order: what the real
// GitHub may punish later and does not refuse at once.
func (s *Server) Violations() []string {
	defer s.world.reading()()
	return slices.Clone(s.pace.problems)
}

// pace counts calls and refuses those above a limit.
type pace struct {
	world  *world
	limits Limits

	// The world's lock guards all that follows.
	byWho    map[string]*paceState
	until    time.Time // calls before it ignore a Retry-After
	problems []string
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

// count counts a call and refuses it above a limit. The lock must be held.
func (p *pace) count(r *request, call *Call) (rate, *apiError) {
	now := p.world.now()
	of := p.byWho[call.As]
	if of == nil {
		of = &paceState{}
		p.byWho[call.As] = of
	}
	if !now.Before(of.windowEnds) {
		of.windowEnds, of.used = now.Add(time.Hour), 0
	}
	limit := rate{limit: p.limits.PerHour, used: of.used, reset: of.windowEnds}
	if limit.limit < 0 {
		limit.limit = unlimited
	}
	if now.Before(p.until) {
		p.problems = append(p.problems, call.Operation+" was called before the time of Retry-After was over")
	}
	if of.used >= limit.limit {
		return limit, primaryLimit(call.As)
	}
	of.used++
	limit.used = of.used
	if p.tooFast(of, r, now) {
		p.until = now.Add(time.Minute)
		return limit, secondaryLimit(http.StatusForbidden, time.Minute)
	}
	return limit, nil
}

// uncount takes back what an answer of 304 did not cost.
func (p *pace) uncount(as string) {
	defer p.world.writing()()
	if of := p.byWho[as]; of != nil && of.used > 0 {
		of.used--
	}
}

// obey remembers until when an injected limit keeps the bot from calling.
func (p *pace) obey(e *apiError) {
	wait, err := strconv.Atoi(e.header["Retry-After"])
	if err != nil {
		return
	}
	defer p.world.writing()()
	p.until = p.world.now().Add(time.Duration(wait) * time.Second)
}

// tooFast counts a call for the secondary limits and reports whether it is above
// one of them.
func (p *pace) tooFast(of *paceState, r *request, now time.Time) bool {
	points := 1
	if r.http.Method != http.MethodGet && r.http.Method != http.MethodHead {
		points = 5
	}
	of.points = slices.DeleteFunc(of.points, func(e pointsAt) bool { return now.Sub(e.at) >= time.Minute })
	sum := points
	for _, e := range of.points {
		sum += e.points
	}
	if p.limits.PointsPerMinute >= 0 && sum > p.limits.PointsPerMinute {
		return true
	}
	of.points = append(of.points, pointsAt{now, points})
	if r.route == nil || !r.route.content {
		return false
	}
	of.content = slices.DeleteFunc(of.content, func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	minute := 0
	for _, at := range of.content {
		if now.Sub(at) < time.Minute {
			minute++
		}
	}
	if p.limits.ContentPerMinute >= 0 && minute >= p.limits.ContentPerMinute ||
		p.limits.ContentPerHour >= 0 && len(of.content) >= p.limits.ContentPerHour {
		return true
	}
	of.content = append(of.content, now)
	return false
}
