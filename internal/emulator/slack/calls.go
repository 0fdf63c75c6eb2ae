package slack

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Call is one call of the bot: of a method, a response URL or a file.
type Call struct {
	Method  string
	Team    string // of the token; empty if it is no good
	Channel string
	Params  map[string]string // as sent, without the token; structures are JSON
	At      time.Time         // when it came in

	Status  int    // of the answer, if it had arrived; zero if nothing was done
	Error   string // Slack's code; empty if the call was carried out
	Details []string
	Faulty  bool // a fault was injected
}

func (s *Server) log(c Call, refused *apiError, faulty, dropped bool) {
	c.Status, c.Faulty = 200, faulty
	if refused != nil {
		c.Error, c.Details = refused.code, refused.messages
		if refused.status != 0 {
			c.Status = refused.status
		}
	}
	if dropped {
		c.Status, c.Error = 0, "dropped"
	}
	s.Log(c)
}

// Limits are how often methods may be called in each workspace.
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
	At     time.Time
	Team   string
	Method string
	Rule   string // "rate", "posts" or "retry_after"
	Detail string
}

// Violations returns what was recorded: broken limits, and calls before the
// time that a 429 had named.
func (s *Server) Violations() []Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

// pacing holds what is needed to check limits, guarded by the server.
type pacing struct {
	calls   map[[2]string][]time.Time // by team and method
	buckets map[[2]string]*bucket     // by team and channel
	pause   map[[2]string]time.Time   // by team and method: 429 until then
}

type bucket struct {
	level float64
	at    time.Time
}

// noteRetryAfter remembers how long the bot was told to wait.
func (s *Server) noteRetryAfter(c Call, e *apiError) {
	if e == nil || e.retryAfter == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pace.pause == nil {
		s.pace.pause = map[[2]string]time.Time{}
	}
	wait := time.Duration(float64(e.retryAfter) * tolerance * float64(time.Second))
	s.pace.pause[[2]string{c.Team, c.Method}] = s.opts.Now().Add(wait)
}

// checkPause records a call that comes before the time that a 429 had named.
func (s *Server) checkPause(c Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{c.Team, c.Method}
	until, ok := s.pace.pause[key]
	switch {
	case !ok:
	case c.At.Before(until):
		early := until.Sub(c.At).Round(time.Millisecond)
		s.problems = append(s.problems, Violation{At: c.At, Team: c.Team, Method: c.Method, Rule: "retry_after", Detail: early.String() + " too early"})
	default:
		delete(s.pace.pause, key)
	}
}

// paceCall checks the limits of a call. The lock must be held.
func (s *Server) paceCall(w *Workspace, name string, p params) *apiError {
	now := s.opts.Now()
	key := [2]string{w.team.ID, name}
	l := s.opts.Limits
	if l == nil {
		return nil
	}
	if limit := l.PerWindow[name]; limit > 0 {
		if refused := s.paceWindow(w, key, limit, now); refused != nil {
			return refused
		}
	}
	if name == "chat.postMessage" && l.Posts > 0 {
		return s.pacePost(w, p.channel(), now)
	}
	return nil
}

func (s *Server) paceWindow(w *Workspace, key [2]string, limit int, now time.Time) *apiError {
	length := s.opts.Limits.Window
	length = cmp.Or(length, time.Minute)
	window := time.Duration(float64(length) * tolerance)
	if s.pace.calls == nil {
		s.pace.calls = map[[2]string][]time.Time{}
	}
	past := s.pace.calls[key]
	past = slices.DeleteFunc(past, func(at time.Time) bool { return now.Sub(at) >= window })
	if len(past) >= limit {
		s.violate(w, key[1], "rate", fmt.Sprintf("more than %d in %v", limit, length))
		if s.opts.Limits.Enforce {
			s.pace.calls[key] = past
			return rateLimited(past[len(past)-limit].Add(length).Sub(now))
		}
	}
	s.pace.calls[key] = append(past, now)
	return nil
}

func (s *Server) pacePost(w *Workspace, channelID string, now time.Time) *apiError {
	l := s.opts.Limits
	if s.pace.buckets == nil {
		s.pace.buckets = map[[2]string]*bucket{}
	}
	key := [2]string{w.team.ID, channelID}
	b := s.pace.buckets[key]
	if b == nil {
		b = &bucket{at: now}
		s.pace.buckets[key] = b
	}
	b.level = max(0, b.level-now.Sub(b.at).Seconds()*l.Posts/tolerance)
	b.at = now
	if b.level+1 > float64(max(1, l.PostBurst)) {
		s.violate(w, "chat.postMessage", "posts", "too many in "+channelID)
		if l.Enforce {
			return rateLimited(time.Duration(float64(time.Second) / l.Posts))
		}
	}
	b.level++
	return nil
}

func (s *Server) violate(w *Workspace, method, rule, detail string) {
	s.problems = append(s.problems, Violation{At: s.opts.Now(), Team: w.team.ID, Method: method, Rule: rule, Detail: detail})
}
