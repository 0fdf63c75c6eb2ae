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
func (p *pacing) Violations() []Violation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.problems)
}

func (p *pacing) violate(chatID int64, rule, detail string) {
	p.problems = append(p.problems, Violation{At: p.opts.Now(), ChatID: chatID, Rule: rule, Detail: detail})
}

// checkEntities records what the real server would silently change.
func (p *pacing) checkEntities(c *chat, entities []Entity) {
	if detail := conflicts(entities); detail != "" {
		p.violate(c.info.ID, "entities", detail)
	}
}

// pacing holds the times of the last sends, and what the bot should not have sent.
type pacing struct {
	*platform

	overall  window
	chats    map[int64]*chatPace
	problems []Violation
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

// paceEdit counts an edit in a chat. The lock must be held.
func (p *pacing) paceEdit(c *chat) *apiError {
	if p.opts.Limits == nil || !p.opts.Limits.Edits {
		return nil
	}
	return p.paceSend(c)
}

// paceSend counts a message to a chat. The lock must be held.
func (p *pacing) paceSend(c *chat) *apiError {
	limits := p.opts.Limits
	if limits == nil {
		return nil
	}
	mine := p.chats[c.info.ID]
	if mine == nil {
		mine = &chatPace{}
		p.chats[c.info.ID] = mine
	}
	now := p.opts.Now()
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
		{limits.Overall, &p.overall, time.Second, "all chats"},
		{limits.PerChat, &mine.second, time.Second, "one chat"},
		{perGroup, &mine.minute, time.Minute, "one group"},
	}
	for _, check := range checks {
		n := check.window.prune(now, check.span) + 1
		if check.limit <= 0 || n <= check.limit {
			continue
		}
		p.violate(c.info.ID, "rate", fmt.Sprintf("%d messages to %s in %v, %d allowed",
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
