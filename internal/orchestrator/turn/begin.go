package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator/access"
	"remote-agent/internal/orchestrator/outbox"
	"remote-agent/internal/orchestrator/port"
	"remote-agent/internal/plan"
	"remote-agent/internal/platform"
	"remote-agent/internal/profile"
	"remote-agent/internal/queue"
	"remote-agent/internal/sessions"
)

// crashAttempts is how often a turn may begin, in multiples of MaxAttempts,
// before it is taken for one that ends the process.
const crashAttempts = 3

// begunTurn is what the transaction that begins a turn decided.
type begunTurn struct {
	call        command.Call
	role        sessions.Role    // of the sender, as the turn began
	job         *command.Command // a command that runs in order; it has no session
	again       bool             // it has begun before
	session     sessions.Session
	prompt      *command.Prompt     // nil for a plain message
	executes    bool                // it carries a plan out, if there is one
	plan        *plan.Plan          // the plan that the turn carries out
	shown       []messages.Delivery // the message of a plan that was settled just now; see sendShown
	profile     *profile.Profile    // of the session, as it is now; nil for the default
	work        Prepared
	system      string               // the system prompt
	config      []byte               // the session's configuration, JSON
	checkpoint  *sessions.Checkpoint // nil if the turn goes on, or has no session
	placeholder *messages.Delivery
	request     []messages.Message // as it was stored now; nil if an earlier attempt did
	before      int64              // the number of the session's newest message before the request; 0 for none
	run         int64              // the number of the run in its session
}

// model returns the model that the turn's prompt asks for.
func (b begunTurn) model() string {
	if b.prompt == nil {
		return ""
	}
	return b.prompt.Model
}

// outcome is what the assistant made of a turn.
type outcome struct {
	reply    *command.Reply     // of a job
	text     string             // what was said, also when it ended early
	rest     []messages.Message // complete messages that are not stored yet
	went     bool               // there was a complete message
	finished assistant.Finished
	card     string // what the placeholder says in the end, if the answer is a message of its own
	host     *host  // nil for a job
	err      error
	took     time.Duration
}

// beginning is what a worker decides on an entry in a transaction: to begin its turn, to
// put it off, or to settle it.
type beginning struct {
	*worker
	tx    port.Tx
	entry sessions.Entry
}

// beginEntry begins the turn of an entry, or settles it without one. It runs in
// the transaction that decided on it; it is safe to repeat after a crash: the
// user's message and the placeholder of an earlier attempt are found again.
func (b beginning) beginEntry(ctx context.Context) (decision, error) {
	if b.entry.In.Kind == messages.KindUnreadable {
		return b.setAside(ctx)
	}
	v, err := b.o.access.Authorize(ctx, b.tx, b.entry.In)
	r := b.ready[b.entry.ID]
	if err != nil {
		return decision{}, err
	}
	switch {
	case v.Role == sessions.Stranger:
		return b.settle(ctx, sessions.EntryRefused, "",
			"You can no longer use this bot, so this was not started.")
	case b.unsent != "" && b.entry.In.Opening == b.unsent: // nobody would see the answer
		return b.settle(ctx, sessions.EntryFailed, "its place could not be opened", "This was not started, because it could not be posted here. Ask again.")
	case b.entry.Attempts >= crashAttempts*b.o.config.MaxAttempts:
		return b.settle(ctx, sessions.EntryFailed, "too many attempts",
			fmt.Sprintf("This failed %d times and will not be tried again. Your message is saved; try asking in another way.", b.entry.Attempts))
	case v.State.Halted():
		return b.waitHalted(ctx, v.State)
	case b.needsPreparing(b.entry):
		return b.prepares(v), nil
	case r.refused:
		return b.unadmitted(ctx, r.gateErr)
	case needsClone(r.err) != nil:
		d, err := b.mayClone(ctx, needsClone(r.err))
		d.access = v.State.AccessSeq
		return d, err
	case errors.Is(r.err, platform.ErrWithdrawn) && b.entry.State == sessions.EntryRunning: // it had begun, and shows that
		return b.settle(ctx, sessions.EntryStopped, r.err.Error(), "⏹ Your message was deleted, so I stopped.")
	case errors.Is(r.err, platform.ErrWithdrawn):
		return decision{what: settled}, b.o.Withdraw(ctx, b.tx, b.entry)
	case r.err != nil:
		return b.unprepared(ctx, r.err)
	case r.unreadable != "":
		return b.settle(ctx, sessions.EntryFailed, "nothing that can be read", r.unreadable)
	}
	return b.begin(ctx, v)
}

// prepares is that something has to be read before the turn of an entry can begin.
func (b beginning) prepares(v access.Verdict) decision {
	if b.open != nil && !b.open.Deliveries && !b.open.Control {
		b.calm = new(b.numbers())
	}
	return decision{what: prepare, entry: b.entry, access: v.State.AccessSeq}
}

// begin begins the turn of an entry, for a sender who was judged.
func (b beginning) begin(ctx context.Context, v access.Verdict) (d decision, err error) {
	d = decision{what: turn, entry: b.entry, access: v.State.AccessSeq}
	d.begun.role, d.begun.again = v.Role, b.entry.State == sessions.EntryRunning
	d.begun.call, _ = command.Parse(b.entry.In.Text)
	d.begun.work = b.ready[b.entry.ID].work
	if d.begun.job = b.job(d.begun.call); d.begun.job == nil {
		if d, err = b.beginRun(ctx, d); err != nil {
			if isRefusal(err) && b.stored == nil {
				return b.settle(ctx, sessions.EntryFailed, err.Error(), b.failed(err))
			}
			return decision{}, err
		}
	}
	if d.begun.placeholder, err = b.placeholder(ctx, b.tx, b.entry); err != nil {
		return decision{}, err
	}
	running, attempts := sessions.EntryRunning, b.entry.Attempts+1
	d.entry.State, d.entry.Attempts, d.entry.SessionID = running, attempts, d.begun.session.ID
	if b.stored != nil && d.begun.checkpoint != nil && *b.stored == *d.begun.checkpoint {
		return d, nil
	}
	return d, b.tx.Inbox().UpdateEntry(ctx, b.entry.ID, sessions.EntryUpdate{
		State: &running, Attempts: &attempts, SessionID: &d.begun.session.ID, Preparation: begunWith(b.entry.Preparation),
		Checkpoint: d.begun.checkpoint,
	})
}

// job returns the command that a call means, if no assistant has to do with it: one of ours, or
// what answers a name that nobody knows, not even the repository.
func (b beginning) job(call command.Call) *command.Command {
	if c, ok := b.o.config.Commands.Find(call.Name); ok && (c.Lane == command.Job || c.Lane == command.Ahead || c.Files) {
		return &c
	}
	_, ours := b.o.config.Commands.Find(call.Invoked().Name)
	if call.Name == "" || ours || b.ready[b.entry.ID].work.Prompt != nil || b.entry.In.Schedule != 0 {
		return nil
	}
	return &command.Command{Name: call.Name, Lane: command.Job, Run: b.o.config.Commands.Unknown}
}

// settle settles the entry without a turn.
func (b beginning) settle(ctx context.Context, state sessions.EntryState, errText, shown string) (decision, error) {
	return decision{what: settled}, b.settleWith(ctx, b.tx, b.entry, state, errText, shown)
}

// setAside settles an entry that is damaged in the database, whoever sent it, so that it
// does not hold up what came behind it.
func (b beginning) setAside(ctx context.Context) (decision, error) {
	if err := b.o.outbox.TellUnreadable(ctx, b.tx, b.entry); err != nil {
		return decision{}, err
	}
	b.tx.AfterCommit(func() { b.o.outbox.Unmark(b.entry) })
	return b.settle(ctx, sessions.EntryFailed, outbox.ErrUnreadable, outbox.TextUnreadable)
}

// refuse settles an entry whose sender the platform does not admit.
func (b beginning) refuse(ctx context.Context, why error) (decision, error) {
	if b.entry.State == sessions.EntryRunning { // it had begun, and shows that
		return b.settle(ctx, sessions.EntryRefused, "not admitted",
			"You can no longer give me work here, so I stopped.")
	}
	state, reason := sessions.EntryRefused, "not admitted"
	if why != nil {
		reason = why.Error()
	}
	if err := b.tx.Inbox().UpdateEntry(ctx, b.entry.ID, sessions.EntryUpdate{State: &state, Error: &reason}); err != nil {
		return decision{}, err
	}
	due, err := b.o.outbox.RefusalDue(ctx, b.tx, b.entry.In, true)
	return decision{what: refused, entry: b.entry, tell: due, why: why}, err
}

// unprepared settles an entry whose turn could not be prepared, or puts it aside
// if the reason may pass. Nothing of it is in the session yet.
func (b beginning) unprepared(ctx context.Context, err error) (decision, error) {
	if d, again, failed := b.putOff(ctx, err, true); again || failed != nil {
		return d, failed
	}
	b.o.config.Log.WarnContext(ctx, "a turn could not be prepared", "conversation", b.conv.Key, "entry", b.entry.ID, "err", err)
	return b.settle(ctx, sessions.EntryFailed, err.Error(), b.failed(err)+inLog(b.entry, err))
}

// unadmitted refuses an entry whose sender the platform does not admit. If it could
// only not be asked, the entry is put aside, and what becomes of it is said in a message
// that is on record: it was accepted, and may be of somebody who may.
func (b beginning) unadmitted(ctx context.Context, why error) (decision, error) {
	if why == nil {
		return b.refuse(ctx, nil)
	}
	if d, again, err := b.putOff(ctx, why, false); again || err != nil {
		return d, err
	}
	return b.settle(ctx, sessions.EntryRefused, why.Error(), outbox.TextUnchecked)
}

// putOff puts an entry aside for its next try, unless an error does not pass or there
// were enough. For a shown one its placeholder says so, and the worker stays to count the
// seconds; on whoever may not be allowed to ask no word is spent.
func (b beginning) putOff(ctx context.Context, err error, shown bool) (d decision, again bool, failed error) {
	errText := err.Error()
	b.entry.Attempts++
	pause, again := retries(b.o.config.MaxAttempts).Next(b.entry.Attempts, err)
	if !again {
		return decision{}, false, nil
	}
	delete(b.ready, b.entry.ID)
	at := time.Now().Add(pause)
	if failed = b.tx.Inbox().UpdateEntry(ctx, b.entry.ID, sessions.EntryUpdate{Attempts: &b.entry.Attempts, NextAt: &at, Error: &errText}); failed != nil {
		return decision{}, true, failed
	}
	if shown && b.o.outbox.ShowsProgress(b.conv.Key.Platform) {
		d, failed = b.showsAgain(ctx, retrying{entry: b.entry, why: fault.Public(err), until: at, next: b.entry.Attempts + 1, of: b.o.config.MaxAttempts})
		return d, true, failed
	}
	d, failed = b.leaveUntil(ctx, b.tx, at)
	return d, true, failed
}

// showsAgain has the placeholder of an entry show that its turn, which could not be
// prepared, waits for its next try.
func (b beginning) showsAgain(ctx context.Context, t retrying) (d decision, err error) {
	d = decision{what: putOff, entry: b.entry, again: &t}
	t.buttons = b.againButtons(b.entry, false)
	if d.begun.placeholder, err = b.placeholder(ctx, b.tx, b.entry); err != nil {
		return decision{}, err
	}
	return d, b.o.config.Queue.Enqueue(ctx, b.tx, queue.Job{Kind: queue.KindTurn, Key: b.conv.ID, At: t.until})
}

// isRefusal reports whether err says no to a person: such an entry is settled,
// not tried again. Errors of the database, lost leases above all, are not.
func isRefusal(err error) bool {
	f, ok := errors.AsType[*refusal](err)
	return ok && f != nil
}

// refusal is a rule's no, with a text for the person.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }

func (r *refusal) Unwrap() error { return r.err }

// beginRun begins a run of a session for what was decided.
func (b beginning) beginRun(ctx context.Context, d decision) (decision, error) {
	r := run{w: b.worker, d: d}
	err := r.beginSession(ctx, b.tx)
	return r.d, err
}

// beginSession finds the prompt, the plan and the session of a turn and stores
// its request.
func (r *run) beginSession(ctx context.Context, tx port.Tx) error {
	entry, b := r.d.entry, &r.d.begun
	r.w.o.choosePrompt(b)
	if b.executes && b.role == sessions.Reader {
		return &refusal{err: fault.New(fault.Forbidden, "You have read-only access: you can ask for a plan, but someone else has to run it.")}
	}
	err := r.needsGoal(ctx, tx)
	if err != nil {
		return err
	}
	if b.executes && entry.State != sessions.EntryRunning {
		if _, err = profileByID(ctx, tx, r.w.conv.AgentID); err != nil {
			return err // a refusal changes nothing, so it comes first
		}
		if b.plan, err = r.takePlan(ctx, tx); err != nil {
			return err
		}
		if err = r.needsPlan(ctx, tx); err != nil {
			return err
		}
	}
	if b.session, err = r.resolveSession(ctx, tx); err != nil {
		return err
	}
	if err = r.applyProfile(ctx, tx); err != nil {
		return err
	}
	return r.storeRequest(ctx, tx)
}

// storeRequest begins a run, with the person's message the first time the turn
// begins. Later attempts go on with what is stored; calls that were
// interrupted are marked as such and never repeated by us.
func (r *run) storeRequest(ctx context.Context, tx port.Tx) error {
	entry, b := r.d.entry, &r.d.begun
	run := sessions.NewRun{
		SessionID: b.session.ID, EntryID: entry.ID, Model: r.modelOf(), Again: entry.State == sessions.EntryRunning,
	}
	if run.Again {
		stored, err := tx.Messages().RunMessages(ctx, entry.ID)
		if err != nil {
			return err
		}
		if len(stored) > 0 {
			begun, err := tx.Sessions().BeginRun(ctx, run)
			if b.run = begun.Number; err != nil {
				return err
			}
			if b.work.Notice != "" { // on another machine, its files are others
				if err := r.w.notice(ctx, tx, entry, b.work.Notice); err != nil {
					return err
				}
			}
			return r.w.interrupted(ctx, tx, entry, b.session.ID)
		}
	}
	in := entry.In
	if r, ok := r.w.ready[entry.ID]; ok {
		files := r.attachments
		if b.work.Prompt == nil { // a command file of the repository gets one line of reference only
			in.Quotes = append(slices.Clip(r.earlier), in.Quotes...)
		} else {
			files = files[:r.came]
		}
		if files != nil {
			in.Attachments = files
		}
	}
	call, text := b.planned()
	if err := r.holdFiles(ctx, tx, in.Attachments); err != nil {
		return err
	}
	request, warnings := requestMessage(in, b.prompt, call, text)
	begun, err := tx.Sessions().BeginRun(ctx, run, request)
	if err != nil {
		return err
	}
	b.run, b.before, request.Seq = begun.Number, begun.Newest, begun.Seqs[0]
	b.request = []messages.Message{request}
	notices := []string{b.work.Notice, b.drift()}
	for _, warning := range warnings {
		notices = append(notices, "⚠ "+warning)
	}
	if notice := joinNotices(notices...); notice != "" {
		if err := r.w.notice(ctx, tx, entry, notice); err != nil {
			return err
		}
	}
	b.checkpoint = &sessions.Checkpoint{
		EntryID: entry.ID, ConversationID: r.w.conv.ID, SessionID: b.session.ID, Seq: request.Seq, Ref: b.work.Checkpoint,
	}
	return nil
}

// resolveSession returns the session that a turn runs in: that of an earlier
// attempt, else the active one, else a new one. If the transition rule says so,
// or a plan is carried out, the active one ends first.
func (r *run) resolveSession(ctx context.Context, tx port.Tx) (sessions.Session, error) {
	entry, b := r.d.entry, &r.d.begun
	if entry.SessionID != "" {
		if s, err := tx.Sessions().Session(ctx, entry.SessionID); err == nil || !fault.Is(err, fault.NotFound) {
			return s, err
		}
	}
	s, active, err := r.w.activeSession(ctx, tx)
	if err != nil {
		return s, err
	}
	parent := ""
	if active {
		var meta sessions.CommandMeta
		if b.prompt != nil {
			meta = b.prompt.Meta
		}
		if b.plan == nil && sessions.Next(s.Metadata, meta) == sessions.Continue {
			return s, nil
		}
		parent = s.ID
	}
	if b.profile, err = profileByID(ctx, tx, r.w.conv.AgentID); err != nil {
		return s, err
	}
	if active {
		if err = tx.Sessions().DeactivateSession(ctx, parent, string(sessions.Restart)); err != nil {
			return s, err
		}
	}
	name := assistant.Name(r.w.conv.Assistant)
	model := ""
	if a := r.w.o.config.Assistants[name]; a != nil {
		model = a.Model()
	}
	title := profile.Default
	if b.profile != nil {
		title = b.profile.Title()
	}
	r.describe()
	if s, err = tx.Sessions().CreateSession(ctx, sessions.NewSession{
		ConversationID: r.w.conv.ID,
		CodebaseID:     r.w.conv.CodebaseID,
		ParentID:       parent,
		Assistant:      r.w.conv.Assistant,
		AgentName:      title,
		AgentID:        r.w.conv.AgentID,
		Model:          model,
		SystemPrompt:   b.system,
		Config:         b.config,
		UserPrompt:     entry.In.Text,
	}); err != nil || b.plan == nil {
		return s, err
	}
	return s, tx.Sessions().UpdateSession(ctx, s.ID, sessions.SessionUpdate{Metadata: sessions.Metadata{sessions.MetaPlan: b.plan.Name()}})
}

// activeSession returns the active session of the conversation, if there is one.
func (w *worker) activeSession(ctx context.Context, tx port.Tx) (sessions.Session, bool, error) {
	if known := w.open; known != nil {
		return known.Session, known.Active, nil
	}
	return tx.Sessions().ActiveSession(ctx, w.conv.ID)
}
