package slack

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Limits are how often methods may be called.
type Limits struct {
	// PerWindow is how many calls of a method are allowed in a window. Methods
	// that are not named are not limited.
	PerWindow map[string]int

	// Window is how long the window is; default one minute. A shorter one makes
	// tests fast.
	Window time.Duration

	// Posts is how many messages a channel takes in a second, with PostBurst at
	// once. Zero is no limit.
	Posts     float64
	PostBurst int

	// Enforce answers 429 to what breaks a limit. Otherwise it is carried out
	// and only recorded.
	Enforce bool
}

// PublishedLimits are the tiers of the documentation: the smallest numbers that
// Slack promises.
func PublishedLimits() *Limits {
	const tier2, tier3, tier4 = 20, 50, 100
	return &Limits{
		PerWindow: map[string]int{
			"chat.update": tier3, "chat.delete": tier3, "chat.postEphemeral": tier4,
			"chat.startStream": tier2, "chat.appendStream": tier4, "chat.stopStream": tier2,
			"agents.sessions.setStatus": tier3, "agents.sessions.rename": tier3,
			"conversations.replies": tier3, "conversations.history": tier3, "conversations.info": tier3,
			"conversations.open": tier3, "conversations.members": tier4,
			"users.info": tier4, "bots.info": tier3,
			"reactions.add": tier3, "reactions.remove": tier2, "reactions.get": tier3,
			"files.getUploadURLExternal": tier4, "files.completeUploadExternal": tier4, "files.info": tier4,
			"views.open": tier4, "views.update": tier4, "views.push": tier4, "views.publish": tier4,
			"apps.connections.open": 1 * tier2,
		},
		Window: time.Minute, Posts: 1, PostBurst: 5,
	}
}

// tolerance shortens the windows, so that a bot that paces itself exactly is not
// accused because the network delivers unevenly.
const tolerance = 0.9

// Violation is something that the bot should not have done, although it may have
// been carried out.
type Violation struct {
	Method string
	Rule   string // "rate", "posts" or "retry_after"
	Detail string
}

// pacing knows how fast the bot called, and what it should not have done. The
// lock of the platform guards it.
type pacing struct {
	*platform

	calls    map[string][]time.Time // by method
	buckets  map[string]*bucket     // by channel
	pause    map[string]time.Time   // by method: 429 until then
	problems []Violation
}

type bucket struct {
	level float64
	at    time.Time
}

func newPacing(p *platform) *pacing {
	return &pacing{
		platform: p, calls: map[string][]time.Time{}, buckets: map[string]*bucket{}, pause: map[string]time.Time{},
	}
}

// Violations returns what was recorded: broken limits, and calls before the
// time that a 429 had named.
func (p *pacing) Violations() []Violation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.problems)
}

// noteRetryAfter remembers how long the bot was told to wait.
func (p *pacing) noteRetryAfter(c Call, e *apiError) {
	if e == nil || e.retryAfter == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	wait := time.Duration(float64(e.retryAfter) * tolerance * float64(time.Second))
	p.pause[c.Method] = p.opts.Now().Add(wait)
}

// checkPause records a call that comes before the time that a 429 had named.
func (p *pacing) checkPause(c Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, ok := p.pause[c.Method]
	switch {
	case !ok:
	case c.At.Before(until):
		early := until.Sub(c.At).Round(time.Millisecond)
		p.problems = append(p.problems, Violation{Method: c.Method, Rule: "retry_after", Detail: early.String() + " too early"})
	default:
		delete(p.pause, c.Method)
	}
}

// paceCall checks the limits of a call. The lock must be held.
func (p *pacing) paceCall(method, channelID string) *apiError {
	l := p.opts.Limits
	if l == nil {
		return nil
	}
	if limit := l.PerWindow[method]; limit > 0 {
		if refused := p.paceWindow(method, limit); refused != nil {
			return refused
		}
	}
	if method == "chat.postMessage" && l.Posts > 0 {
		return p.pacePost(channelID)
	}
	return nil
}

func (p *pacing) paceWindow(method string, limit int) *apiError {
	now := p.opts.Now()
	length := cmp.Or(p.opts.Limits.Window, time.Minute)
	window := time.Duration(float64(length) * tolerance)
	past := slices.DeleteFunc(p.calls[method], func(at time.Time) bool { return now.Sub(at) >= window })
	if len(past) >= limit {
		p.violate(method, "rate", fmt.Sprintf("more than %d in %v", limit, length))
		if p.opts.Limits.Enforce {
			p.calls[method] = past
			return rateLimited(past[len(past)-limit].Add(length).Sub(now))
		}
	}
	p.calls[method] = append(past, now)
	return nil
}

func (p *pacing) pacePost(channelID string) *apiError {
	l, now := p.opts.Limits, p.opts.Now()
	b := p.buckets[channelID]
	if b == nil {
		b = &bucket{at: now}
		p.buckets[channelID] = b
	}
	b.level = max(0, b.level-now.Sub(b.at).Seconds()*l.Posts/tolerance)
	b.at = now
	if b.level+1 > float64(max(1, l.PostBurst)) {
		p.violate("chat.postMessage", "posts", "too many in "+channelID)
		if l.Enforce {
			return rateLimited(time.Duration(float64(time.Second) / l.Posts))
		}
	}
	b.level++
	return nil
}

func (p *pacing) violate(method, rule, detail string) {
	p.problems = append(p.problems, Violation{Method: method, Rule: rule, Detail: detail})
}
