package slack

import (
	"context"
	"strings"
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

// Typing implements platform.Typer with the status that Slack shows for agents:
// that of an agent session, which brings Slack's own Stop, and where there are
// none that of an assistant's thread. A direct message outside of a thread has
// neither.
func (a *Adapter) Typing(ctx context.Context, key messages.ConversationKey) error {
	to, err := parseKey(key)
	if err != nil {
		return err
	}
	every := statusEvery
	if a.sessionState() >= sessionsNoStop {
		every = sessionEvery
	}
	if at, ok := a.statuses.Get(key.ID); to.thread == "" || ok && time.Since(at) < every || a.streams.in(key) {
		return nil
	}
	a.statuses.Put(key.ID, time.Now())
	a.left.done(key)
	err = a.setStatus(ctx, to, true)
	if fault.Is(err, fault.RateLimited) {
		a.statuses.Put(key.ID, time.Time{}) // it was not set; the next time may do
	}
	return err
}

func (a *Adapter) sessionState() sessionState { return sessionState(a.sessions.Load()) }

// setStatus shows that the bot works in a thread, or that it does so no more. It
// makes no call that would have to wait for Slack's rate limits, unless to take
// away what stands for long.
func (a *Adapter) setStatus(ctx context.Context, to place, working bool) error {
	if a.sessionState() != sessionsOff {
		if err := a.setSession(ctx, to, working); !refusesAll(err) {
			return err
		}
	}
	if a.noStatus.Load() {
		return nil
	}
	status := slack.AssistantThreadsSetStatusParameters{ChannelID: to.channel, ThreadTS: to.thread}
	if working {
		status.Status = "is working…"
	}
	err := a.statusCall(ctx, to, working, request{method: "assistant.threads.setStatus", idempotent: true}, func(ctx context.Context) error {
		return a.web.SetAssistantThreadsStatusContext(ctx, status)
	})
	switch codeOf(err) {
	case "missing_scope", "unknown_method", "method_not_supported_for_channel_type", "feature_not_enabled", "no_permission", "not_allowed_token_type":
		if a.noStatus.CompareAndSwap(false, true) {
			a.log.InfoContext(ctx, "slack shows no status of the bot's work", "err", err)
		}
		return nil
	}
	return err
}

// statusCall makes a call for a status, which only waits for Slack's rate limits to
// take one away.
func (a *Adapter) statusCall(ctx context.Context, to place, working bool, r request, do sdkCall) error {
	if working {
		return a.shed(ctx, to.channel+to.thread, r, do)
	}
	return a.limited(ctx, "", r, do)
}

// setSession sets the state of the agent session of a thread, which comes into
// being with that. It finds out whether there are any.
func (a *Adapter) setSession(ctx context.Context, to place, working bool) error {
	state := sessionActive
	if working {
		state = sessionProcessing
	}
	var out *slack.AgentSessionSetStatusResponse
	err := a.statusCall(ctx, to, working, request{method: "agents.sessions.setStatus", idempotent: true}, func(ctx context.Context) (err error) {
		out, err = a.web.SetAgentSessionStatusContext(ctx, slack.AgentSessionSetStatusParameters{ChannelID: to.channel, ThreadTS: to.thread, Status: state})
		return err
	})
	switch {
	case err == nil && strings.Contains(out.Warning, "missing_agent_session_stopped_event_subscription"):
		a.sessions.Store(int32(sessionsNoStop))
	case err == nil:
		a.sessions.Store(int32(sessionsWithStop))
	case refusesAll(err) && a.sessions.CompareAndSwap(int32(sessionsUnknown), int32(sessionsOff)):
		a.log.InfoContext(ctx, "slack has no agent sessions for this app", "err", err)
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
func (a *Adapter) nativeStop(ctx context.Context, to place) bool {
	if a.sessionState() == sessionsUnknown {
		if err := a.setSession(ctx, to, true); err != nil && ctx.Err() == nil {
			a.log.DebugContext(ctx, "could not find out about agent sessions", "err", err)
		}
	}
	return a.sessionState() == sessionsWithStop
}

// clearStatus takes away a status that would be left standing. If that does not
// work now, Run does it later. Unknown says what to do if this process set none:
// another one may have.
func (a *Adapter) clearStatus(ctx context.Context, key messages.ConversationKey, unknown bool) {
	to, err := parseKey(key)
	if err != nil || to.thread == "" {
		return
	}
	at, ok := a.statuses.Take(key.ID, time.Time{})
	switch stands := ok && !at.IsZero(); {
	case stands:
	case !ok && unknown && a.sessionState() != sessionsOff: // else it is gone in two minutes
	default:
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := a.setStatus(ctx, to, false); err != nil {
		a.left.add(key)
		a.log.DebugContext(ctx, "could not take a status away yet", "conversation", key, "err", err)
	}
}

// clearLeft tries once more to take away a status that was left standing.
func (a *Adapter) clearLeft(ctx context.Context) {
	key, ok := a.left.one()
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	to, err := parseKey(key)
	if err == nil {
		err = a.setStatus(ctx, to, false)
	}
	if _, again := fault.Retry(err); err == nil || !again {
		a.left.done(key)
	}
}

// Whisper implements platform.Whisperer: with a message that only the sender
// sees, or, where the bot cannot post one, with an answer to the command.
func (a *Adapter) Whisper(ctx context.Context, to messages.Inbound, text string) error {
	at, err := parseKey(to.Conversation)
	if err != nil {
		return err
	}
	c := render(shorten(text, maxPlain), nil)
	address, answerable := a.replyTo.Get(string(to.Event))
	if answerable && at.opening != "" && a.respond(ctx, address, c) == nil {
		return nil
	}
	_, err = a.postEphemeral(ctx, at, messages.Outbound{OnlyFor: to.Sender.ID}, c)
	if err != nil && answerable && at.opening == "" {
		return a.respond(ctx, address, c)
	}
	return err
}

const (
	dialogBlock = "text" // the id of the block and of the field in it

	// The limits of a modal's title, button and field (views.open, text input).
	maxDialogTitle = 24
	maxDialogLabel = 2000
	maxDialogText  = 3000
)

// OpenDialog implements platform.Dialoger. A text that is longer than the 3000
// characters that Slack's field takes is fault.Invalid, and a press that is
// older than three seconds fault.NotFound.
func (a *Adapter) OpenDialog(ctx context.Context, in messages.Inbound, d platform.Dialog) error {
	if len([]rune(d.Text)) > maxDialogText {
		return fault.Newf(fault.Invalid, "The text is longer than the %d characters that can be edited here.", maxDialogText)
	}
	note := jsonArg(dialogNote{Action: d.ID, Key: in.Conversation.ID, Message: string(in.Message)})
	plainText := func(s string, n int) *slack.TextBlockObject {
		if r := []rune(s); len(r) > n {
			s = string(r[:n-1]) + "…"
		}
		return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
	}
	field := slack.NewPlainTextInputBlockElement(nil, dialogBlock).
		WithMultiline(true).WithMaxLength(maxDialogText).WithInitialValue(d.Text)
	view := slack.ModalViewRequest{
		Type:            slack.VTModal,
		Title:           plainText(first(d.Title, "Edit"), maxDialogTitle),
		Submit:          plainText(first(d.Submit, "Send"), maxDialogTitle),
		Close:           plainText("Cancel", maxDialogTitle),
		PrivateMetadata: note,
		CallbackID:      metadataType,
		Blocks: slack.Blocks{BlockSet: []slack.Block{
			slack.NewInputBlock(dialogBlock, plainText(first(d.Label, "Text"), maxDialogLabel), nil, field),
		}},
	}
	err := a.limited(ctx, "", request{method: "views.open", idempotent: true}, func(ctx context.Context) error {
		_, err := a.web.OpenViewContext(ctx, d.Trigger, view)
		return err
	})
	switch codeOf(err) {
	case "expired_trigger_id", "trigger_expired", "trigger_exchanged", "invalid_trigger_id", "exchanged_trigger_id":
		return &fault.Error{Kind: fault.NotFound, Public: "That took too long. Press the button again.", Err: err}
	}
	return err
}
