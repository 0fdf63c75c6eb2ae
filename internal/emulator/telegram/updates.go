package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"remote-agent/internal/lists"
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

// Updates are what happens for the bot, and how it gets to know: by asking with
// getUpdates, or from its webhook.
type Updates struct {
	*platform

	queue    queue
	poll     *poller
	lastPoll pollMemory
	hook     *webhook
	allowed  []string                               // allowed_updates; nil is the default
	reply    func(ctx context.Context, body []byte) // takes what the webhook answers
}

// queue holds the updates in the order of their ids.
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

func (u *Updates) killPoll(reason string) {
	if u.poll != nil {
		u.poll.reason = reason
		close(u.poll.killed)
		u.poll = nil
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
func (u *Updates) pollPlan(p params) (offset int64, limit int, timeout time.Duration) {
	offset = p.int("offset", 0)
	limit = int(min(max(p.int("limit", maxPollLimit), 1), maxPollLimit))
	timeout = time.Duration(min(max(p.int("timeout", 0), 0), maxPollTimeout)) * time.Second
	now := time.Now()
	if since := now.Sub(u.lastPoll.at); offset == u.lastPoll.offset {
		if since < 3*time.Second {
			timeout = max(timeout, 3*time.Second)
		}
		if since < 500*time.Millisecond {
			limit = 1
		}
	}
	u.lastPoll = pollMemory{offset, now}
	return offset, limit, timeout
}

// getUpdates gives the lock back while it waits.
func (u *Updates) getUpdates(r *request) (any, *apiError) {
	u.killPoll("terminated by other getUpdates request; make sure that only one bot instance is running")
	if u.hook != nil {
		return nil, conflict("can't use getUpdates method while webhook is active; " +
			"use deleteWebhook to delete the webhook first")
	}
	if refused := u.setAllowed(r.p); refused != nil {
		return nil, refused
	}
	offset, limit, timeout := u.pollPlan(r.p)
	me := &poller{wake: make(chan struct{}, 1), killed: make(chan struct{})}
	u.poll = me
	var timer *time.Timer
	for {
		batch := u.queue.take(offset, limit, u.opts.Now())
		u.Notify()
		if len(batch) > 0 || timeout == 0 {
			u.poll = nil
			return encodeBatch(batch), nil
		}
		if timer == nil {
			timer = time.NewTimer(timeout)
			defer timer.Stop()
		}
		u.mu.Unlock()
		select {
		case <-me.wake:
		case <-me.killed:
		case <-r.ctx.Done():
		case <-u.Context().Done():
		case <-timer.C:
			timeout = 0
		}
		u.mu.Lock()
		if u.poll != me {
			return nil, conflict(me.reason)
		}
		if r.ctx.Err() != nil || u.Closed() {
			u.poll = nil
			return rawResult("[]"), nil
		}
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

// setAllowed stores allowed_updates. Without the parameter the last setting
// stays; an empty list is the default again.
func (u *Updates) setAllowed(p params) *apiError {
	var kinds []string
	given, refused := p.json("allowed_updates", &kinds)
	if refused != nil || !given {
		return refused
	}
	if len(kinds) == 0 {
		kinds = nil
	}
	u.allowed = kinds
	return nil
}

// wants reports whether the bot gets updates of a kind. Some it gets only if it
// names them.
func (u *Updates) wants(kind string) bool {
	if u.allowed == nil {
		return !slices.Contains([]string{"chat_member", "message_reaction", "message_reaction_count"}, kind)
	}
	return slices.Contains(u.allowed, kind)
}

// Update is an event for the bot. The emulator adds the update_id.
type Update struct {
	Kind    string // name of the update's field, such as "message" or "poll"
	ChatID  int64  // webhook deliveries are ordered by it; zero for none
	Payload any    // encoded as the field's value; a json.RawMessage is taken as it is
}

// DeliverRaw queues whatever body returns for the update id it gets, which need
// not be an update nor JSON, and returns the id. A batch with a body that is not
// JSON is not JSON as a whole.
func (u *Updates) DeliverRaw(chatID int64, body func(updateID int64) string) int64 {
	u.mu.Lock()
	defer u.unlock()
	return u.push(chatID, func(id int64) []byte { return []byte(body(id)) })
}

// SetNextUpdateID makes updates go on at id, as the real server does after a
// week without updates. It must be larger than all ids before.
func (u *Updates) SetNextUpdateID(id int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if id > u.queue.next {
		u.queue.jumps = append(u.queue.jumps, jump{u.queue.next, id})
		u.queue.next = id
	}
}

// Acknowledged reports whether the bot confirmed an update: by asking for later
// ones, or with 2xx from its webhook. A forgotten update is not acknowledged.
func (u *Updates) Acknowledged(updateID int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.queue.confirmed(updateID)
}

// Pending returns the ids of the updates that are not acknowledged, in order.
func (u *Updates) Pending() []int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return lists.Map(u.queue.pending, func(one *queued) int64 { return one.id })
}

// Forgotten returns the ids of the updates that are gone although the bot never
// confirmed them: by a negative offset, drop_pending_updates or their age.
func (u *Updates) Forgotten() []int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(maps.Keys(u.queue.forgotten))
}

// enqueue adds an update if the bot wants it. The lock must be held.
func (u *Updates) enqueue(one Update) int64 {
	if !u.wants(one.Kind) {
		return 0
	}
	return u.push(one.ChatID, func(id int64) []byte {
		payload, err := json.Marshal(one.Payload)
		if err != nil {
			panic(fmt.Sprintf("telegram emulator: payload of %q: %v", one.Kind, err))
		}
		return fmt.Appendf(nil, `{"update_id":%d,%q:%s}`, id, one.Kind, payload)
	})
}

// push adds a body and wakes whoever takes it. The lock must be held.
func (u *Updates) push(chatID int64, body func(id int64) []byte) int64 {
	id := u.queue.next
	u.queue.next++
	one := &queued{id: id, chatID: chatID, body: body(id), expires: u.opts.Now().Add(retention)}
	u.queue.pending = append(u.queue.pending, one)
	if u.hook != nil {
		u.hook.hand(one)
	}
	if u.poll != nil {
		select {
		case u.poll.wake <- struct{}{}:
		default:
		}
	}
	return id
}
