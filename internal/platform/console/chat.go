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

// Run lets a person talk until the input or ctx ends, or Ctrl-C is pressed twice. At
// the end of the input it waits for what is under way.
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
	s := &session{Chat: c, backend: b, terminal: terminal.New(c.Terminal), pending: newPending(), quit: quit}
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
	if c.Greeting != "" {
		s.terminal.Note(c.Greeting)
	}
	err = s.terminal.Run(running, terminal.Handler{Submit: s.submit, Interrupt: s.interrupt})
	if err == nil && running.Err() == nil {
		err = settle(ctx, b, c.Conversation, s.pending)
	}
	stop()
	work.Wait()
	return errors.Join(err, s.lost)
}

// session is a Chat while it runs.
type session struct {
	Chat

	backend  Backend
	terminal *terminal.Terminal
	pending  *pending
	quit     func()
	lost     error // why nothing is shown any more
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
		if e.Mark != "" {
			s.pending.marked(e)
			continue
		}
		if err := s.terminal.Show(e.Message, e.Text, e.Final); err != nil {
			end()
			return fault.Wrap(err, fault.Gone, "write to the terminal")
		}
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
			if (waits || state.Busy || len(state.Questions) > 0) && now.Sub(asked) > askEvery {
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

// submit sends what was typed.
func (s *session) submit(ctx context.Context, text string) {
	files, missing := attachments(text)
	for _, name := range missing {
		s.terminal.Note(fmt.Sprintf("There is no file %s; it was sent as text.", name))
	}
	if err := s.say(ctx, Message{Text: text, Files: files}); err != nil && ctx.Err() == nil {
		s.terminal.Note("Not sent: " + fault.Public(err) + " Press the up arrow to get your text back.")
	}
}

func (s *session) say(ctx context.Context, m Message) error {
	s.pending.begin()
	id, err := s.backend.Say(ctx, s.Conversation, m)
	s.pending.said(id, err)
	return err
}

// interrupt stops the turn that runs; the second time it quits.
func (s *session) interrupt(ctx context.Context, second bool) bool {
	if second {
		s.quit()
		return true
	}
	if state, err := s.backend.State(ctx, s.Conversation); err != nil || !state.Busy && len(state.Questions) == 0 {
		return false
	}
	if err := s.say(ctx, Message{Text: "/stop"}); err != nil {
		s.terminal.Note("Not stopped: " + fault.Public(err))
		return true
	}
	s.stopping.Store(true)
	s.terminal.Status(stopping)
	return true
}

// ended reports whether a mark is the last one on a message.
func ended(m platform.Mark) bool { return m == platform.MarkDone || m == platform.MarkFailed }
