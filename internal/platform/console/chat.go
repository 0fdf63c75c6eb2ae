package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/terminal"
)

const (
	// A text that grows takes at most a fifth of a processor, and is never more than
	// maxRest behind for that.
	restFactor = 4
	maxRest    = 250 * time.Millisecond

	statusEvery = 250 * time.Millisecond
	askEvery    = time.Second // how often a backend is asked what is under way
)

// Chat is a person at a terminal.
type Chat struct {
	Terminal     terminal.Config // Complete and Pasted are added
	Conversation string
	Quit         func() // ends the program; nil: Run returns
	Greeting     string // the first line; may be empty

	// Opened, if not nil, is given the terminal before anything is read.
	Opened func(t *terminal.Terminal)
}

// maxUnsent is how many texts wait until the other side takes them.
const maxUnsent = 100

// Run lets a person talk until the input or ctx ends, or Ctrl-C is pressed twice, which
// ends it whatever the other side does. At the end of the input it waits for what is
// under way.
func (c Chat) Run(ctx context.Context, b Backend) error {
	w, err := b.Watch(ctx, c.Conversation)
	if err != nil {
		return err
	}
	defer w.Close() //nolint:errcheck // nothing is read any more
	commands, err := b.Commands(ctx)
	if err != nil {
		return err
	}
	c.Terminal.Complete, c.Terminal.Pasted = completer(commands), pastedPath
	running, quit := context.WithCancel(ctx)
	defer quit()
	s := &session{Chat: c, backend: b, terminal: terminal.New(c.Terminal), pending: newPending(), quit: quit,
		typed: make(chan terminal.Input, maxUnsent), stops: make(chan struct{}, 1)}
	if c.Quit != nil {
		s.quit = c.Quit
	}
	if c.Opened != nil {
		c.Opened(s.terminal)
	}
	watching, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { s.lost = s.show(watching, w, quit) })
	work.Go(func() { s.report(watching) })
	work.Go(func() { s.send(watching) })
	work.Go(func() { s.stop(watching) })
	if c.Greeting != "" {
		s.terminal.Note(c.Greeting)
	}
	err = s.terminal.Run(running, terminal.Handler{Submit: s.submit, Interrupt: s.interrupt})
	if err == nil && running.Err() == nil {
		if s.busy.Load() || s.pending.open() > 0 {
			s.terminal.Note("Waiting for the answer. Press Ctrl-C twice to quit now.")
		}
		_, err = settled(ctx, b, c.Conversation, s.pending)
	}
	if s.stopping.Load() && c.Quit == nil {
		s.terminal.Note("The bot has not confirmed that it stopped; it may go on with the answer.")
	}
	stop()
	work.Wait()
	if n := s.unsent + len(s.typed); n > 0 {
		s.terminal.Note(fmt.Sprintf("The bot did not respond: your last %s may not have been sent. The up arrow brings back what you typed.", counted(n)))
	}
	return errors.Join(err, s.lost)
}

// session is a Chat while it runs.
type session struct {
	Chat

	backend  Backend
	terminal *terminal.Terminal
	pending  *pending
	quit     func()
	typed    chan terminal.Input // what send has not taken yet
	stops    chan struct{}       // holds a value if stop is to be called for
	lost     error               // why nothing is shown any more
	unsent   int                 // texts that send was told to leave

	busy     atomic.Bool // something was under way when the other side was last asked
	stirred  atomic.Bool // something was shown since
	stopping atomic.Bool
}

// stopping is shown until a stop has come through.
const stopping = "Stopping. Press Ctrl-C again to quit."

// show brings what is said on the screen until ctx ends, or there is nobody any more
// who says anything: then it ends the chat.
func (s *session) show(ctx context.Context, w Watcher, end func()) error {
	for {
		e, err := w.Next(ctx)
		if ctx.Err() != nil && err != nil {
			return nil //nolint:nilerr // told to stop, after all was shown
		}
		if err != nil {
			end()
			if errors.Is(err, io.EOF) {
				return errStopped
			}
			return err
		}
		s.pending.seen(e)
		if e.Mark != "" {
			continue
		}
		s.stirred.Store(true)
		began := time.Now()
		if err := s.terminal.Show(e.Message, e.Text, e.Final); err != nil {
			end()
			return fault.Wrap(err, fault.Gone, "write to the terminal")
		}
		if !e.Final {
			rest(ctx, time.Since(began))
		}
	}
}

// rest leaves the processor to what is typed after a text that grows was laid out, which
// took a time: a long one is laid out as a whole, and shown less often. Of what comes
// meanwhile the watcher keeps the latest.
func rest(ctx context.Context, took time.Duration) {
	select {
	case <-time.After(min(restFactor*took, maxRest)):
	case <-ctx.Done():
	}
}

// errStopped is returned when the bot on the other side is gone.
var errStopped = fault.New(fault.Unavailable, "The bot stopped. Accepted messages are saved and answered when it runs again.")

// report says what is under way, right above the typed line.
func (s *session) report(ctx context.Context) {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	var asked, since time.Time
	state, _ := s.backend.State(ctx, s.Conversation) // asked again
	for {
		select {
		case <-ctx.Done():
			s.terminal.Status("")
			return
		case now := <-tick.C:
			waits := s.pending.open() > 0
			if (waits || state.Busy || len(state.Questions) > 0 || s.stirred.Load()) && now.Sub(asked) > askEvery {
				s.stirred.Store(false)
				asked = now
				if next, err := s.backend.State(ctx, s.Conversation); err == nil {
					state = next
				}
				if !state.Busy {
					s.pending.idle(now)
				}
			}
			if since.IsZero() && (waits || state.Busy) {
				since = now
			} else if !waits && !state.Busy {
				since = time.Time{}
				s.stopping.Store(false)
			}
			s.busy.Store(state.Busy || len(state.Questions) > 0)
			s.terminal.Status(s.status(state, since, now))
		}
	}
}

// status says what is under way since a time; zero if nothing is.
func (s *session) status(state State, since, now time.Time) string {
	switch {
	case len(state.Questions) > 0:
		return fmt.Sprintf("Waiting for you: /approve %[1]s or /deny %[1]s", state.Questions[0])
	case since.IsZero():
		return ""
	case s.stopping.Load():
		return stopping
	default:
		return fmt.Sprintf("Working, %d s. Ctrl-C stops it.", int(now.Sub(since).Seconds()))
	}
}

// submit has a text sent behind those that were typed before.
func (s *session) submit(_ context.Context, in terminal.Input) {
	s.pending.begin()
	select {
	case s.typed <- in:
	default:
		s.pending.said("", errUnsent)
		s.terminal.Note("Not sent: the bot has not taken your last 100 messages yet. Press the up arrow to get your text back.")
	}
}

var errUnsent = errors.New("not sent")

// send sends what is typed, one text after the other, until ctx ends.
func (s *session) send(ctx context.Context) {
	for {
		var in terminal.Input
		select {
		case <-ctx.Done():
			return
		case in = <-s.typed:
		}
		files, notes := attachments(in)
		id, err := s.backend.Say(ctx, s.Conversation, Message{Text: in.Text, Files: files})
		s.pending.said(id, err)
		switch {
		case err == nil:
			notes = append(notes, sentWith(files))
		case ctx.Err() != nil:
			s.unsent++
			return
		default:
			notes = []string{"Not sent: " + fault.Public(err) + " Press the up arrow to get your text back."}
		}
		for _, note := range notes {
			if note != "" {
				s.terminal.Note(note)
			}
		}
	}
}

// interrupt has the turn that runs stopped; the second time it quits. It waits for
// nothing: the other side may not answer.
func (s *session) interrupt(_ context.Context, second bool) bool {
	if second || s.stopping.Load() {
		s.quit()
		return true
	}
	select {
	case s.stops <- struct{}{}:
	default: // one is on its way
	}
	if !s.busy.Load() && s.pending.open() == 0 {
		return false // as far as is known here
	}
	s.stopping.Store(true)
	if s.Terminal.Plain {
		s.terminal.Note(stopping)
	}
	s.terminal.Status(stopping)
	return true
}

// stop stops the turn that runs whenever it is asked to, until ctx ends.
func (s *session) stop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.stops:
		}
		done, err := s.stopTurn(ctx)
		if err != nil && ctx.Err() == nil && s.stopping.Load() {
			s.terminal.Note("Not stopped: " + fault.Public(err) + " Press Ctrl-C twice to quit.")
		}
		s.stopping.Store(done)
	}
}

// stopTurn stops the turn that runs. done is false if there is none.
func (s *session) stopTurn(ctx context.Context) (done bool, err error) {
	within, cancel := context.WithTimeoutCause(ctx, stopWithin, errSlow)
	defer cancel()
	defer func() {
		if err != nil && errors.Is(context.Cause(within), errSlow) {
			err = errSlow
		}
	}()
	if state, err := s.backend.State(within, s.Conversation); err != nil || !state.Busy && len(state.Questions) == 0 {
		return false, err
	}
	s.pending.begin()
	id, err := s.backend.Say(within, s.Conversation, Message{Text: "/stop"})
	s.pending.said(id, err)
	return err == nil, err
}

// errSlow is returned when the other side does not answer.
var errSlow = fault.New(fault.Unavailable, "The bot did not respond within 5 seconds.")

func counted(n int) string {
	if n == 1 {
		return "message"
	}
	return fmt.Sprintf("%d messages", n)
}

// ended reports whether a mark is the last one on a message.
func ended(m platform.Mark) bool { return m == platform.MarkDone || m == platform.MarkFailed }
