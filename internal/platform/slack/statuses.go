package slack

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

const (
	// statusEvery is how often a status is repeated. Slack shows one until a
	// message is posted, for two minutes at most (contract B4.6).
	statusEvery = 30 * time.Second

	// sessionEvery is the same for the status of an agent session, which stands
	// for about an hour.
	sessionEvery = 10 * time.Minute
)

// The states of an agent session that are used.
const (
	sessionProcessing = "processing"
	sessionActive     = "active"
)

// sessionState is what is known of agent sessions in this workspace.
type sessionState int32

const (
	sessionsUnknown  sessionState = iota
	sessionsOff                   // the workspace or the app has none
	sessionsNoStop                // there are, but without Slack's own Stop
	sessionsWithStop              // and with it
)

// statuses shows that the bot works.
type statuses struct {
	api      *api
	streams  *streamSet
	log      *slog.Logger
	shown    *platform.Recent[string, time.Time] // conversation id -> when its status was set
	sessions atomic.Int32                        // what sessionState is known
	noStatus atomic.Bool                         // the workspace has no status of assistant threads
	left     leftovers                           // statuses to take away
}

// Typing implements platform.Typer with the status that Slack shows for agents:
// that of an agent session, which brings Slack's own Stop, and where there are
// none that of an assistant's thread. A direct message outside of a thread has
// neither.
func (s *statuses) Typing(ctx context.Context, key messages.ConversationKey) error {
	to, err := parseKey(key)
	if err != nil {
		return err
	}
	every := statusEvery
	if s.sessionState() >= sessionsNoStop {
		every = sessionEvery
	}
	if at, ok := s.shown.Get(key.ID); to.thread == "" || ok && time.Since(at) < every || s.streams.in(key) {
		return nil
	}
	s.shown.Put(key.ID, time.Now())
	s.left.done(key)
	err = s.setStatus(ctx, to, true)
	if fault.Is(err, fault.RateLimited) {
		s.shown.Put(key.ID, time.Time{}) // it was not set; the next time may do
	}
	return err
}

func (s *statuses) sessionState() sessionState { return sessionState(s.sessions.Load()) }

// setStatus shows that the bot works in a thread, or that it does so no more. It
// makes no call that would have to wait for Slack's rate limits, unless to take
// away what stands for long.
func (s *statuses) setStatus(ctx context.Context, to place, working bool) error {
	if s.sessionState() != sessionsOff {
		if err := s.setSession(ctx, to, working); !refusesAll(err) {
			return err
		}
	}
	if s.noStatus.Load() {
		return nil
	}
	status := slack.AssistantThreadsSetStatusParameters{ChannelID: to.channel, ThreadTS: to.thread}
	if working {
		status.Status = "is working…"
	}
	err := s.statusCall(ctx, to, working, request{method: "assistant.threads.setStatus", idempotent: true}, func(ctx context.Context, web *slack.Client) error {
		return web.SetAssistantThreadsStatusContext(ctx, status)
	})
	switch codeOf(err) {
	case "missing_scope", "unknown_method", "method_not_supported_for_channel_type", "feature_not_enabled", "no_permission", "not_allowed_token_type":
		if s.noStatus.CompareAndSwap(false, true) {
			s.log.InfoContext(ctx, "slack shows no status of the bot's work", "err", err)
		}
		return nil
	}
	return err
}

// statusCall makes a call for a status, which only waits for Slack's rate limits to
// take one away.
func (s *statuses) statusCall(ctx context.Context, to place, working bool, r request, do sdkCall) error {
	if working {
		return s.api.shed(ctx, to.channel+to.thread, r, do)
	}
	return s.api.limited(ctx, "", r, do)
}

// setSession sets the state of the agent session of a thread, which comes into
// being with that. It finds out whether there are any.
func (s *statuses) setSession(ctx context.Context, to place, working bool) error {
	state := sessionActive
	if working {
		state = sessionProcessing
	}
	var out *slack.AgentSessionSetStatusResponse
	err := s.statusCall(ctx, to, working, request{method: "agents.sessions.setStatus", idempotent: true}, func(ctx context.Context, web *slack.Client) (err error) {
		out, err = web.SetAgentSessionStatusContext(ctx, slack.AgentSessionSetStatusParameters{ChannelID: to.channel, ThreadTS: to.thread, Status: state})
		return err
	})
	switch {
	case err == nil && strings.Contains(out.Warning, "missing_agent_session_stopped_event_subscription"):
		s.sessions.Store(int32(sessionsNoStop))
	case err == nil:
		s.sessions.Store(int32(sessionsWithStop))
	case refusesAll(err) && s.sessions.CompareAndSwap(int32(sessionsUnknown), int32(sessionsOff)):
		s.log.InfoContext(ctx, "slack has no agent sessions for this app", "err", err)
	}
	return err
}

// refusesAll reports whether an error may say that Slack does such a thing nowhere
// in the workspace, and not only that it did not in this place or this time.
func refusesAll(err error) bool {
	code := codeOf(err)
	if code == "" || code == "not_in_channel" || strings.HasPrefix(code, "restricted_action") {
		return false
	}
	return fault.Is(err, fault.Invalid) || fault.Is(err, fault.Forbidden) || fault.Is(err, fault.Unsupported)
}

// nativeStop reports whether Slack shows its own Stop while the bot works in a
// thread, and finds out if that is not known.
func (s *statuses) nativeStop(ctx context.Context, to place) bool {
	if s.sessionState() == sessionsUnknown {
		if err := s.setSession(ctx, to, true); err != nil && ctx.Err() == nil {
			s.log.DebugContext(ctx, "could not find out about agent sessions", "err", err)
		}
	}
	return s.sessionState() == sessionsWithStop
}

// clearStatus takes away a status that would be left standing. If that does not
// work now, Run does it later. Unknown says what to do if this process set none:
// another one may have.
func (s *statuses) clearStatus(ctx context.Context, key messages.ConversationKey, unknown bool) {
	to, err := parseKey(key)
	if err != nil || to.thread == "" {
		return
	}
	at, ok := s.shown.Take(key.ID, time.Time{})
	switch stands := ok && !at.IsZero(); {
	case stands:
	case !ok && unknown && s.sessionState() != sessionsOff: // else it is gone in two minutes
	default:
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := s.setStatus(ctx, to, false); err != nil {
		s.left.add(key)
		s.log.DebugContext(ctx, "could not take a status away yet", "conversation", key, "err", err)
	}
}

// after takes the status of the bot's work away if a message has not done
// so. Behind a placeholder, or beside a stream, the work goes on.
func (s *statuses) after(ctx context.Context, out messages.Outbound) {
	switch {
	case s.sessionState() == sessionsOff:
		s.shown.Put(out.Conversation.ID, time.Time{}) // a message ends that of an assistant's thread
	case out.Text != platform.Placeholder && !s.streams.in(out.Conversation):
		s.clearStatus(ctx, out.Conversation, out.Again)
	}
}

// clearLeft tries once more to take away a status that was left standing.
func (s *statuses) clearLeft(ctx context.Context) {
	key, ok := s.left.one()
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	to, err := parseKey(key)
	if err == nil {
		err = s.setStatus(ctx, to, false)
	}
	if _, again := fault.Retry(err); err == nil || !again {
		s.left.done(key)
	}
}

// leftovers are statuses that could not be taken away when their turn ended.
type leftovers struct {
	mu    sync.Mutex // guards keys
	keyed map[string]messages.ConversationKey
}

// add remembers one. Beyond maxKept of them, what is left stands until Slack
// takes it away.
func (l *leftovers) add(key messages.ConversationKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keyed == nil {
		l.keyed = make(map[string]messages.ConversationKey)
	}
	if len(l.keyed) < maxKept {
		l.keyed[key.ID] = key
	}
}

// done forgets one that was taken away, or that a new turn needs again.
func (l *leftovers) done(key messages.ConversationKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.keyed, key.ID)
}

// one returns any of them.
func (l *leftovers) one() (messages.ConversationKey, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range l.keyed {
		return key, true
	}
	return messages.ConversationKey{}, false
}
