package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"time"
)

const (
	maxPollTimeout = 50             // seconds; larger values are lowered
	maxPollLimit   = 100            // updates in one answer
	retention      = 24 * time.Hour // how long an update waits for the bot
	futureOffsets  = 10             // an offset further ahead than this is ignored
)

// queued is an update that the bot has not confirmed.
type queued struct {
	id      int64
	chatID  int64
	body    []byte
	expires time.Time
}

// queue holds the updates in the order of their ids, guarded by the server.
type queue struct {
	next      int64  // the id of the next update
	jumps     []jump // gaps in the ids
	pending   []*queued
	forgotten map[int64]bool // gone without having been confirmed
}

// jump is a range of ids, without its end, that no update has.
type jump struct{ from, to int64 }

func newQueue() queue {
	return queue{next: 1, forgotten: map[int64]bool{}}
}

// confirm removes all updates with an id below offset.
func (q *queue) confirm(offset int64) {
	n := sort.Search(len(q.pending), func(i int) bool { return q.pending[i].id >= offset })
	clear(q.pending[:n])
	q.pending = q.pending[n:]
}

// remove takes one update away, confirmed or not.
func (q *queue) remove(id int64, confirmed bool) {
	n := sort.Search(len(q.pending), func(i int) bool { return q.pending[i].id >= id })
	if n == len(q.pending) || q.pending[n].id != id {
		return
	}
	q.pending = slices.Delete(q.pending, n, n+1)
	if !confirmed {
		q.forgotten[id] = true
	}
}

// forget drops the oldest n updates.
func (q *queue) forget(n int) {
	for _, u := range q.pending[:n] {
		q.forgotten[u.id] = true
	}
	q.pending = q.pending[n:]
}

// take does what getUpdates does with the queue: it confirms, forgets and
// returns what is next.
func (q *queue) take(offset int64, limit int, now time.Time) []*queued {
	expired := 0
	for expired < len(q.pending) && now.After(q.pending[expired].expires) {
		expired++
	}
	q.forget(expired)
	switch {
	case offset < 0:
		q.forget(max(0, len(q.pending)+int(max(offset, -1<<31))))
	case offset > 0 && offset <= q.next+futureOffsets:
		q.confirm(offset)
	}
	return q.pending[:min(limit, len(q.pending))]
}

// confirmed reports whether an update existed and was confirmed.
func (q *queue) confirmed(id int64) bool {
	if id < 1 || id >= q.next || q.forgotten[id] {
		return false
	}
	if slices.ContainsFunc(q.jumps, func(j jump) bool { return j.from <= id && id < j.to }) {
		return false
	}
	n := sort.Search(len(q.pending), func(i int) bool { return q.pending[i].id >= id })
	return n == len(q.pending) || q.pending[n].id != id
}

// poller is a getUpdates request that waits. killed is closed, after reason was
// set, when something ends it.
type poller struct {
	wake   chan struct{}
	killed chan struct{}
	reason string
}

func (s *Server) killPoll(reason string) {
	if s.poll != nil {
		s.poll.reason = reason
		close(s.poll.killed)
		s.poll = nil
	}
}

// pollMemory is what the server remembers of the last getUpdates.
type pollMemory struct {
	offset int64
	at     time.Time
}

// pollPlan returns what a getUpdates call asks for, slowed down as the real
// server does it for a bot that asks the same again and again. The lock must be
// held.
func (s *Server) pollPlan(p params) (offset int64, limit int, timeout time.Duration) {
	offset = p.int("offset", 0)
	limit = int(min(max(p.int("limit", maxPollLimit), 1), maxPollLimit))
	timeout = time.Duration(min(max(p.int("timeout", 0), 0), maxPollTimeout)) * time.Second
	now := time.Now()
	if since := now.Sub(s.lastPoll.at); offset == s.lastPoll.offset {
		if since < 3*time.Second {
			timeout = max(timeout, 3*time.Second)
		}
		if since < 500*time.Millisecond {
			limit = 1
		}
	}
	s.lastPoll = pollMemory{offset, now}
	return offset, limit, timeout
}

func (s *Server) getUpdates(ctx context.Context, p params) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killPoll("terminated by other getUpdates request; make sure that only one bot instance is running")
	if s.hook != nil {
		return nil, conflict("can't use getUpdates method while webhook is active; " +
			"use deleteWebhook to delete the webhook first")
	}
	if refused := s.setAllowed(p); refused != nil {
		return nil, refused
	}
	offset, limit, timeout := s.pollPlan(p)
	me := &poller{wake: make(chan struct{}, 1), killed: make(chan struct{})}
	s.poll = me
	var timer *time.Timer
	for {
		batch := s.queue.take(offset, limit, s.opts.Now())
		s.Notify()
		if len(batch) > 0 || timeout == 0 {
			s.endPoll(me)
			return encodeBatch(batch), nil
		}
		if timer == nil {
			timer = time.NewTimer(timeout)
			defer timer.Stop()
		}
		s.mu.Unlock()
		select {
		case <-me.wake:
		case <-me.killed:
		case <-ctx.Done():
		case <-s.Context().Done():
		case <-timer.C:
			timeout = 0
		}
		s.mu.Lock()
		if s.poll != me {
			return nil, conflict(me.reason)
		}
		if ctx.Err() != nil || s.Closed() {
			s.endPoll(me)
			return rawResult("[]"), nil
		}
	}
}

func (s *Server) endPoll(me *poller) {
	if s.poll == me {
		s.poll = nil
	}
}

func encodeBatch(batch []*queued) rawResult {
	size := 2
	for _, u := range batch {
		size += len(u.body) + 1
	}
	out := append(make([]byte, 0, size), '[')
	for i, u := range batch {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, u.body...)
	}
	return append(out, ']')
}

// optIn are the kinds of updates that a bot gets only if it names them.
func optIn(kind string) bool {
	switch kind {
	case "chat_member", "message_reaction", "message_reaction_count":
		return true
	}
	return false
}

// setAllowed stores allowed_updates. Without the parameter the last setting
// stays; an empty list is the default again.
func (s *Server) setAllowed(p params) *apiError {
	var kinds []string
	given, refused := p.json("allowed_updates", &kinds)
	if refused != nil || !given {
		return refused
	}
	if len(kinds) == 0 {
		kinds = nil
	}
	s.allowed = kinds
	return nil
}

func (s *Server) wants(kind string) bool {
	if s.allowed == nil {
		return !optIn(kind)
	}
	return slices.Contains(s.allowed, kind)
}

// Update is an event for the bot. The emulator adds the update_id.
type Update struct {
	Kind    string // name of the update's field, such as "message" or "poll"
	ChatID  int64  // webhook deliveries are ordered by it; zero for none
	Payload any    // encoded as the field's value; a json.RawMessage is taken as it is
}

// Deliver queues an update and returns its id, or zero if the bot did not ask
// for this kind of update.
func (s *Server) Deliver(u Update) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.Notify()
	return s.enqueue(u)
}

// DeliverRaw queues whatever body returns for the update id it gets, which need
// not be an update nor JSON, and returns the id. A batch with a body that is not
// JSON is not JSON as a whole.
func (s *Server) DeliverRaw(chatID int64, body func(updateID int64) string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.Notify()
	return s.push(chatID, func(id int64) []byte { return []byte(body(id)) })
}

// SetNextUpdateID makes updates go on at id, as the real server does after a
// week without updates. It must be larger than all ids before.
func (s *Server) SetNextUpdateID(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id > s.queue.next {
		s.queue.jumps = append(s.queue.jumps, jump{s.queue.next, id})
		s.queue.next = id
	}
}

// Acknowledged reports whether the bot confirmed an update: by asking for later
// ones, or with 2xx from its webhook. A forgotten update is not acknowledged.
func (s *Server) Acknowledged(updateID int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.confirmed(updateID)
}

// Pending returns the ids of the updates that are not acknowledged, in order.
func (s *Server) Pending() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]int64, len(s.queue.pending))
	for i, u := range s.queue.pending {
		ids[i] = u.id
	}
	return ids
}

// Forgotten returns the ids of the updates that are gone although the bot never
// confirmed them: by a negative offset, drop_pending_updates or their age.
func (s *Server) Forgotten() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]int64, 0, len(s.queue.forgotten))
	for id := range s.queue.forgotten {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// enqueue adds an update if the bot wants it. The lock must be held.
func (s *Server) enqueue(u Update) int64 {
	if !s.wants(u.Kind) {
		return 0
	}
	return s.push(u.ChatID, func(id int64) []byte {
		payload, err := json.Marshal(u.Payload)
		if err != nil {
			panic(fmt.Sprintf("telegram emulator: payload of %q: %v", u.Kind, err))
		}
		return fmt.Appendf(nil, `{"update_id":%d,%q:%s}`, id, u.Kind, payload)
	})
}

// push adds a body and wakes whoever takes it. The lock must be held.
func (s *Server) push(chatID int64, body func(id int64) []byte) int64 {
	id := s.queue.next
	s.queue.next++
	u := &queued{id: id, chatID: chatID, body: body(id), expires: s.opts.Now().Add(retention)}
	s.queue.pending = append(s.queue.pending, u)
	if s.hook != nil {
		s.hand(s.hook, u)
	}
	if s.poll != nil {
		select {
		case s.poll.wake <- struct{}{}:
		default:
		}
	}
	return id
}
