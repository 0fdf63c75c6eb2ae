package telegram

import (
	"fmt"
	"slices"
	"time"
)

// Limits are the published sending limits, counted in sliding windows. Zero
// means that a limit is not checked.
type Limits struct {
	PerChat  int // messages in one second to one chat
	PerGroup int // messages in one minute to one group
	Overall  int // messages in one second to all chats

	// Edits counts edits like messages.
	Edits bool

	// Enforce answers 429 to what breaks a limit. Otherwise it is carried out
	// and only recorded.
	Enforce bool
}

// PublishedLimits are the figures of the Bot API's FAQ.
func PublishedLimits() *Limits { return &Limits{PerChat: 1, PerGroup: 20, Overall: 30} }

// slack shortens the windows, so that a bot that paces itself exactly is not
// accused because the network delivers unevenly.
const slack = 0.9

// Violation is something that the bot should not have done, although the server
// took it.
type Violation struct {
	At     time.Time
	ChatID int64
	Rule   string // "rate" or "entities"
	Detail string
}

// Violations returns what was recorded: broken limits and text entities that
// the real server would silently change.
func (s *Server) Violations() []Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

func (s *Server) violate(chatID int64, rule, detail string) {
	s.problems = append(s.problems, Violation{At: s.opts.Now(), ChatID: chatID, Rule: rule, Detail: detail})
}

// pacing holds the times of the last sends, guarded by the server.
type pacing struct {
	overall window
	chats   map[int64]*chatPace
}

type chatPace struct{ second, minute window }

// window holds times, oldest first.
type window []time.Time

// prune forgets what is longer ago than d and returns how many are left.
func (w *window) prune(now time.Time, d time.Duration) int {
	start := now.Add(-time.Duration(float64(d) * slack))
	n := 0
	for n < len(*w) && !(*w)[n].After(start) {
		n++
	}
	*w = (*w)[n:]
	return len(*w)
}

func (s *Server) paceEdit(c *chat) *apiError {
	if s.opts.Limits == nil || !s.opts.Limits.Edits {
		return nil
	}
	return s.paceSend(c)
}

// paceSend counts a message to a chat. The lock must be held.
func (s *Server) paceSend(c *chat) *apiError {
	limits := s.opts.Limits
	if limits == nil {
		return nil
	}
	if s.pace.chats == nil {
		s.pace.chats = map[int64]*chatPace{}
	}
	mine := s.pace.chats[c.info.ID]
	if mine == nil {
		mine = &chatPace{}
		s.pace.chats[c.info.ID] = mine
	}
	now := s.opts.Now()
	perGroup := limits.PerGroup
	if !c.isGroup() {
		perGroup = 0
	}
	checks := [...]struct {
		limit  int
		window *window
		span   time.Duration
		what   string
	}{
		{limits.Overall, &s.pace.overall, time.Second, "all chats"},
		{limits.PerChat, &mine.second, time.Second, "one chat"},
		{perGroup, &mine.minute, time.Minute, "one group"},
	}
	for _, check := range checks {
		n := check.window.prune(now, check.span) + 1
		if check.limit <= 0 || n <= check.limit {
			continue
		}
		s.violate(c.info.ID, "rate", fmt.Sprintf("%d messages to %s in %v, %d allowed",
			n, check.what, check.span, check.limit))
		if limits.Enforce {
			oldest := (*check.window)[n-1-check.limit]
			return floodWait(oldest.Add(check.span).Sub(now))
		}
	}
	for _, check := range checks {
		*check.window = append(*check.window, now)
	}
	return nil
}
