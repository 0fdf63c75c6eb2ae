package tour

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/child"
	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
)

const (
	token    = "1000:token-of-the-tour" //nolint:gosec // only the emulator takes it
	modelKey = "sk-tour-0123456789abcdef"

	ann = int64(42)  // may talk to the bot
	eve = int64(666) // may not
)

// tour is the stage: the services, the bot and the screen.
type tour struct {
	opts   Options
	dir    string
	screen *screen
	tg     *telegram.Server
	ai     *openai.Server
	hub    *hub
	bot    *child.Process // nil before the first start

	asked  []question
	beside []string // what messages say that belong to no question, but to a button
}

// question is a message of Ann and how its one answer is told from all others.
type question struct {
	text   string
	update int64
	answer string // is in the answer and in no other message
}

func open(ctx context.Context, opts Options, dir string) (*tour, error) {
	t := &tour{opts: opts, dir: dir, screen: newScreen(opts)}
	t.tg = telegram.New(telegram.Options{Token: token, BotUsername: "acme_bot", BotName: "Acme Bot", OnChange: t.screen.changed})
	t.ai = openai.New(openai.Options{APIKey: modelKey})
	t.tg.AddUser(telegram.User{ID: ann, FirstName: "Ann"})
	t.tg.AddUser(telegram.User{ID: eve, FirstName: "Eve"})
	err := errors.Join(t.tg.Start(), t.ai.Start())
	if err == nil {
		t.hub, err = openHub(ctx, dir, opts.Environ)
	}
	if err != nil {
		t.close()
		return nil, fmt.Errorf("demo: %w", err)
	}
	return t, nil
}

// close ends everything, however the tour ended.
func (t *tour) close() {
	if t.bot != nil {
		t.bot.Kill() // nothing of it is kept
	}
	t.tg.Close()
	t.ai.Close()
	if t.hub != nil {
		t.hub.close()
	}
}

// pause lets people read.
func (t *tour) pause(ctx context.Context, d time.Duration) {
	if !t.opts.Fast {
		_ = emulator.Sleep(ctx, d) // or the end
	}
}

// model scripts the next answer: words come one after the other.
func (t *tour) model(text string) { t.ai.Enqueue(t.spoken(text)) }

// spoken is a text at the pace at which models write.
func (t *tour) spoken(text string) openai.Response {
	wait := 70 * time.Millisecond
	if t.opts.Fast {
		wait = time.Millisecond
	}
	var steps []openai.Step
	for word := range strings.SplitSeq(text, " ") {
		if len(steps) > 0 {
			word = " " + word
		}
		steps = append(steps, openai.Delta(word), openai.Pause(wait))
	}
	return openai.Reply(steps...)
}

// says lets Ann write a message whose answer will contain answer.
func (t *tour) says(ctx context.Context, text, answer string) {
	t.pause(ctx, 500*time.Millisecond)
	sent := t.tg.Person(ann).Says(text)
	t.asked = append(t.asked, question{text: text, update: sent.UpdateID, answer: answer})
}

// shows lets Ann send a picture with a question.
func (t *tour) shows(ctx context.Context, name string, picture []byte, text, answer string) error {
	t.pause(ctx, 500*time.Millisecond)
	t.screen.said("Ann", "["+name+"] "+text)
	sent := t.tg.Person(ann).Sends(telegram.Attachment{Kind: "photo", Name: name, MIME: "image/png", Data: picture}, text)
	t.asked = append(t.asked, question{text: text, update: sent.UpdateID, answer: answer})
	if err := t.sees(ctx, ann, answer); err != nil {
		return err
	}
	return t.settled(ctx)
}

// presses lets Ann press the newest button with a label.
func (t *tour) presses(ctx context.Context, label string) error {
	message, data := 0, ""
	err := t.until(ctx, func() bool {
		for _, m := range t.tg.ChatView(ann).FromBot() {
			for _, row := range m.Keyboard() {
				for _, b := range row {
					if b.Text == label {
						message, data = m.ID, b.Data
					}
				}
			}
		}
		return data != ""
	})
	if err != nil {
		return fmt.Errorf("there is no button %q: %w", label, err)
	}
	t.pause(ctx, 1500*time.Millisecond)
	t.screen.note("Ann presses [%s]", label)
	t.tg.Person(ann).Presses(message, data)
	return nil
}

// sees waits until a message of the bot in a chat contains all parts.
func (t *tour) sees(ctx context.Context, chat int64, parts ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := t.tg.WaitText(ctx, chat, func(text string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
	})
	if err != nil {
		return fmt.Errorf("there was no message with %q: %w", parts, err)
	}
	return nil
}

// asks lets Ann write and waits for the answer.
func (t *tour) asks(ctx context.Context, text, answer string) error {
	t.says(ctx, text, answer)
	if err := t.sees(ctx, ann, answer); err != nil {
		return err
	}
	return t.settled(ctx)
}

// settled waits until the model has nothing more to do and what was taken in is
// acknowledged, so that scenes do not overlap.
func (t *tour) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := t.ai.Wait(ctx, func(s openai.Stats) bool { return s.Active == 0 }); err != nil {
		return fmt.Errorf("the model is still asked: %w", err)
	}
	return t.until(ctx, func() bool { return len(t.tg.Pending()) == 0 })
}

// until waits for a condition on the emulated Telegram.
func (t *tour) until(ctx context.Context, check func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return t.tg.WaitFor(ctx, check)
}

// lastSent returns how many messages the model was sent last, without
// instructions.
func (t *tour) lastSent() int {
	requests := t.ai.Requests()
	if len(requests) == 0 {
		return 0
	}
	return sent(requests[len(requests)-1])
}

func sent(r openai.Request) int {
	n := 0
	for _, role := range r.Roles() {
		if role != "system" {
			n++
		}
	}
	return n
}

// interactive lets the person at the terminal write in Ann's place.
func (t *tour) interactive(ctx context.Context) error {
	t.screen.header("Your turn", "You are Ann now; the model repeats what you say. Try /help, /status, /stop, /new. Ctrl-D ends.")
	t.ai.Script(func(r openai.Request) openai.Response {
		return t.spoken(fmt.Sprintf("You said: %s (The model was sent %d messages.)", r.LastUserText(), sent(r)))
	})
	t.screen.typed()
	lines := make(chan string)
	go func() { // ends with the input, or with the process
		defer close(lines)
		for in := bufio.NewScanner(t.opts.Input); in.Scan(); {
			select {
			case lines <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	last := "" // what has to be answered before the end
	for {
		select {
		case line, ok := <-lines:
			switch line = strings.TrimSpace(line); {
			case !ok:
				err := t.sees(ctx, ann, last)
				t.screen.settle()
				return err
			case line == "":
				continue
			case strings.HasPrefix(line, "/"): // may have ended what was asked before
				last = ""
			default:
				last = "You said: "
			}
			t.tg.Person(ann).Says(line)
		case <-ctx.Done():
			return nil
		}
	}
}
