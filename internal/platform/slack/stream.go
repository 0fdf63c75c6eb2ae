package slack

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
)

// Where Slack allows it, the placeholder of a turn is a stream
// (chat.startStream): progress appends to it, and the last edit closes it and
// puts the final text in its place. So there is one message from the first sign
// to the answer, as where answers are edited.
//
// chat.startStream takes no metadata; only chat.stopStream and chat.update do.
// A stream whose opening is in doubt is therefore found as what it is: the bot's
// message in that thread, later than what it answers, that no metadata claims.
// All else that the bot posts has some, and a stream gets its own when it is
// closed. A process that does not know of a stream hears of it from chat.update
// (streaming_state_conflict) and closes it.

const (
	// maxStreams is how many streams are open at once. More could be kept alive,
	// but not closed at once within the rate of chat.stopStream.
	maxStreams = 8

	// streamFor is how long a stream is open. Slack is known to end streams after
	// five minutes and to leave a sign of failure on the message.
	streamFor = 4 * time.Minute

	// A stream that nothing is appended to for about 30 seconds ends the same
	// way. It is kept alive every aliveEvery, and closed if that does not work.
	aliveEvery = 12 * time.Second
	deadAfter  = 25 * time.Second

	// maxStreamed is how many characters a stream takes, of Slack's 12,000.
	maxStreamed = 11_900

	// offFor is how long no stream is opened after Slack refused one as such.
	offFor = 10 * time.Minute
)

// stream is an open stream.
type stream struct {
	key    messages.ConversationKey
	to     place
	ts     string
	asker  string // user id of the person who sees it grow; empty if not known
	opened time.Time

	mu      sync.Mutex // guards all below; held during calls, which keeps their order
	text    string     // what was appended
	length  int        // how many characters were, with those that keep it alive
	touched time.Time
	broken  bool // nobody knows what of it has arrived
	over    bool
}

// streamSet knows the open streams.
type streamSet struct {
	mu      sync.Mutex // guards all below
	kept    bool       // somebody keeps them alive
	open    map[string]*stream
	opening int
}

func newStreamSet() *streamSet { return &streamSet{open: make(map[string]*stream)} }

// keep says whether somebody keeps streams alive.
func (s *streamSet) keep(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = on
}

func (s *streamSet) isKept() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept
}

// begin takes a place for a stream. Without someone who keeps it alive, or if
// all places are taken, it reports false. end gives the place back.
func (s *streamSet) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.kept || len(s.open)+s.opening >= maxStreams {
		return false
	}
	s.opening++
	return true
}

// end ends what begin began, with the stream or nil.
func (s *streamSet) end(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening--
	if st != nil {
		s.open[messageID(st.to, st.ts)] = st
	}
}

func (s *streamSet) find(id string) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[id]
}

func (s *streamSet) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
}

// all returns the open streams, in no order.
func (s *streamSet) all() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.open))
}

// in reports whether a stream is open in a conversation: Slack then shows by
// itself that the bot works.
func (s *streamSet) in(key messages.ConversationKey) bool {
	return slices.ContainsFunc(s.all(), func(st *stream) bool { return st.key == key })
}

// messageID names a message within this adapter's account.
func messageID(to place, ts string) string { return to.channel + " " + ts }

// streams shows answers in streams.
type streams struct {
	api      *api
	enabled  bool
	people   *people
	askers   askers
	statuses *statuses
	claims   claims // message -> delivery
	set      *streamSet
	refused  [2]atomic.Int64       // by kindOfPlace: none are opened until then, in Unix nanoseconds
	stops    chan messages.Inbound // stops that Run passes on
	log      *slog.Logger
	observe  func(string)
}

// openStream opens a stream in the place of a placeholder. It reports false if
// there is to be none: then a message is posted as ever. If it reports true, the
// error, which is Uncertain, leaves open whether there is one.
func (s *streams) openStream(ctx context.Context, to place, out messages.Outbound) (ts string, opened bool, err error) {
	user, team, ok := s.askers.recipient(to, out)
	if !s.enabled || !ok || to.thread == "" || s.streamsOff(to) || !s.set.begin() {
		return "", false, nil
	}
	var st *stream
	defer func() { s.set.end(st) }()
	if len(out.Buttons) > 0 && !s.statuses.nativeStop(ctx, to) {
		return "", false, nil // a stream shows no buttons while it is open
	}
	options := []slack.MsgOption{slack.MsgOptionTS(to.thread), noPreviews}
	if team != "" {
		options = append(options, slack.MsgOptionRecipientUserID(user), slack.MsgOptionRecipientTeamID(team))
	}
	err = s.api.shed(ctx, to.channel+to.thread, request{method: "chat.startStream"}, func(ctx context.Context, web *slack.Client) (err error) {
		_, ts, err = web.StartStreamContext(ctx, to.channel, options...)
		return err
	})
	switch {
	case fault.Uncertain(err):
		return "", true, err
	case err != nil:
		s.refusedStream(ctx, to, err)
		return "", false, nil
	case !isTS(ts):
		return "", true, &fault.Error{Kind: fault.Unavailable, Uncertain: true, Err: errNoTS}
	}
	now := time.Now()
	st = &stream{key: out.Conversation, to: to, ts: ts, asker: user, opened: now, touched: now}
	s.claims.Put(messageID(to, ts), claimed{delivery: out.Delivery})
	s.statuses.shown.Put(out.Conversation.ID, now) // Slack shows that the agent works
	s.observe("stream_opened")
	return ts, true, nil
}

// streamsOff reports whether Slack refused to open streams in such a place a
// short while ago.
func (s *streams) streamsOff(to place) bool {
	return time.Now().UnixNano() < s.refused[kindOfPlace(to)].Load()
}

// kindOfPlace tells direct messages from channels, as Slack may allow streams in
// one and not in the other.
func kindOfPlace(to place) int {
	if strings.HasPrefix(to.channel, "D") {
		return 1
	}
	return 0
}

// refusedStream remembers that Slack opens no streams, if that is what an error
// says.
func (s *streams) refusedStream(ctx context.Context, to place, err error) {
	if !refusesAll(err) {
		return // of this moment or this place
	}
	s.refused[kindOfPlace(to)].Store(time.Now().Add(offFor).UnixNano())
	s.observe("stream_refused")
	s.log.InfoContext(ctx, "slack opens no stream here; answers are edited instead", "direct", kindOfPlace(to) == 1, "err", err)
}

// editStream shows an edit in an open stream. It reports true if nothing is left
// to do; else the stream is closed and the message can be edited.
func (s *streams) editStream(ctx context.Context, st *stream, edit platform.Edit) (shown bool, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over {
		return false, nil
	}
	// An open stream shows no buttons. A person who could not stop the turn
	// otherwise is worth more than text that flows.
	stoppable := len(edit.Buttons) == 0 || s.statuses.nativeStop(ctx, st.to)
	if edit.Progress && stoppable && !st.broken && s.set.isKept() && st.extends(settled(edit.Text)) {
		err = s.appendText(ctx, st, settled(edit.Text))
		switch {
		case st.over:
			return codeOf(err) == "stopped_by_user", nil
		case !st.broken:
			return true, err
		}
	}
	return false, s.closeStream(ctx, st, edit)
}

// extends reports whether text goes on where the stream stands and has room.
func (st *stream) extends(text string) bool {
	return strings.HasPrefix(defused(text), defused(st.text)) && strings.HasPrefix(text, st.text) &&
		st.length+utf8.RuneCountInString(defused(text))-utf8.RuneCountInString(defused(st.text)) <= maxStreamed
}

// settled returns the part of an unfinished text that no later text changes:
// without the mark that Split adds to close a code block, and without a last word
// that may become a mention.
func settled(text string) string {
	if text == platform.Placeholder {
		return ""
	}
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		last := strings.TrimSpace(strings.TrimLeft(text[i+1:], "> "))
		if len(last) >= 3 && (strings.Trim(last, "`") == "" || strings.Trim(last, "~") == "") {
			text = text[:i]
		}
	}
	if i := strings.LastIndexAny(text, " \t\n") + 1; strings.ContainsAny(text[i:], "<@") {
		text = text[:i]
	}
	return text
}

// appendText appends what text has more than the stream. Afterwards the stream is
// as before if the call did nothing, broken if that is not known, or over. st.mu
// is held.
func (s *streams) appendText(ctx context.Context, st *stream, text string) error {
	more := defused(text)[len(defused(st.text)):]
	if more == "" {
		return nil
	}
	err := s.appendTo(ctx, st, more)
	if err == nil {
		st.text = text
	}
	return err
}

// appendTo makes one call of chat.appendStream. It is not repeated if its effect
// is in doubt: there is no key that would tell one from the other (contract
// B4.5). st.mu is held.
func (s *streams) appendTo(ctx context.Context, st *stream, more string) error {
	err := s.api.shed(ctx, messageID(st.to, st.ts), request{method: "chat.appendStream"}, func(ctx context.Context, web *slack.Client) error {
		_, _, err := web.AppendStreamContext(ctx, st.to.channel, st.ts, slack.MsgOptionMarkdownText(more))
		return err
	})
	switch {
	case err == nil:
		st.length += utf8.RuneCountInString(more)
		st.touched = time.Now()
	case codeOf(err) == "stopped_by_user":
		s.streamOver(st)
		s.stoppedByPerson(st)
	case codeOf(err) == "message_not_in_streaming_state":
		s.observe("stream_lost")
		s.streamOver(st)
	case fault.Is(err, fault.RateLimited), fault.Passing(err) && !fault.Uncertain(err):
	case fault.Is(err, fault.Canceled) && !fault.Uncertain(err):
	default:
		st.broken = true
	}
	return err
}

// streamOver forgets a stream that takes nothing any more. st.mu is held.
func (s *streams) streamOver(st *stream) {
	st.over = true
	s.set.drop(messageID(st.to, st.ts))
}

// closeStream ends a stream, with what edit has more than the stream as far as
// that can still take it. st.mu is held.
func (s *streams) closeStream(ctx context.Context, st *stream, edit platform.Edit) error {
	rest := ""
	if !st.broken && st.extends(edit.Text) {
		rest = defused(edit.Text)[len(defused(st.text)):]
	}
	if st.length == 0 && rest == "" {
		rest = platform.Placeholder // Slack ends no stream that is empty
	}
	err := s.stopStream(ctx, st.to, st.ts, rest, edit)
	if err == nil || fault.Is(err, fault.NotFound) {
		s.streamOver(st)
	}
	return err
}

// stopStream ends the stream of a message, with the rest of its text and the
// buttons of edit; one that has ended is success. It can be repeated: then it has.
func (s *streams) stopStream(ctx context.Context, to place, ts, rest string, edit platform.Edit) error {
	id := messageID(to, ts)
	stop := func(options ...slack.MsgOption) error {
		r := request{method: "chat.stopStream", idempotent: true}
		end := func(ctx context.Context, web *slack.Client) error {
			_, _, err := web.StopStreamContext(ctx, to.channel, ts, options...)
			return err
		}
		if edit.Progress {
			return s.api.shed(ctx, id, r, end)
		}
		return s.api.limited(ctx, "", r, end)
	}
	options := []slack.MsgOption{s.claims.metadata(id)}
	if rest != "" {
		options = append(options, slack.MsgOptionMarkdownText(rest))
	}
	if row := actions(edit.Buttons); row != nil {
		row.BlockID = to.account
		options = append(options, slack.MsgOptionBlocks(row))
	}
	err := stop(options...)
	if err == nil {
		s.claims.attached(id)
	}
	if fault.Is(err, fault.Invalid) {
		// What was to be added is refused, or the stream is empty, which is not
		// known of another process's.
		err = stop(slack.MsgOptionMarkdownText(platform.Placeholder))
	}
	if err == nil {
		s.statuses.shown.Put(makeKey(to).ID, time.Time{}) // this ends the session's status, too
	}
	switch codeOf(err) {
	case "message_not_in_streaming_state", "stopped_by_user":
		return nil
	}
	return err
}

// askers remembers who wrote a message, for the stream that may answer it.
type askers struct {
	users *platform.Recent[string, string] // message -> user id of who wrote it
	homes *platform.Recent[string, string] // user id -> team
	calls *platform.Recent[string, string] // thread and user id -> ts of what they called the bot with
}

// remember remembers who wrote a message and where they are at home, for the
// stream that may answer it. The team of a person of another organization is only
// known if the event tells.
func (a askers) remember(me identity, env envelope, ev event) {
	a.users.Put(messageID(place{channel: ev.Channel}, ev.TS), ev.User)
	if !a.began(ev) {
		a.calls.Put(callID(ev), ev.TS)
	}
	team := cmp.Or(ev.UserTeam, ev.SourceTeam, ev.Team)
	if team == "" && !env.External {
		team = me.team
	}
	if team != "" {
		a.homes.Put(ev.User, team)
	}
}

// soonAfter is how long after a mention more of the same person is taken to belong to it:
// longer than Slack repeats what was not acknowledged.
const soonAfter = 10 * time.Minute

// began reports whether who wrote ev has called the bot a moment before, with the message
// that ev is below or with one below the same.
func (a askers) began(ev event) bool {
	call, _ := a.calls.Get(callID(ev))
	after := timeOf(ev.TS).Sub(timeOf(call))
	return call != "" && after > 0 && after < soonAfter
}

func callID(ev event) string {
	return messageID(place{channel: ev.Channel}, cmp.Or(ev.ThreadTS, ev.TS)) + " " + ev.User
}

// recipient returns who is to see a stream grow: whoever asked, with their team
// if Slack wants to know, which it does in a channel. It reports false if that is
// not known.
func (a askers) recipient(to place, out messages.Outbound) (user, team string, ok bool) {
	user = string(out.Asker.ID)
	for _, ts := range []string{string(out.ReplyTo), to.thread} {
		if user == "" {
			user, _ = a.users.Get(messageID(to, ts))
		}
	}
	if strings.HasPrefix(to.channel, "D") {
		return user, "", true
	}
	team, known := a.homes.Get(user)
	if !known && !out.Asker.External {
		team = to.account[strings.LastIndexByte(to.account, ':')+1:]
	}
	return user, team, isID(user) && isID(team)
}
