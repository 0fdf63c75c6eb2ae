package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
)

const apiKey = "sk-bench-0123456789abcdef"

// question and answer are as long as everyday ones: 20 and about 70 tokens.
const (
	question = "Could you explain in a few words what this part of the program is there for? "
	sentence = "It keeps the order of the messages and makes sure that none is lost on its way. "
	repeats  = 3
)

// endMark begins the last piece of an answer, so that a complete answer is told
// from one that grows.
const endMark = "End of "

// world is what the bot sees of the outside.
type world struct {
	token string
	tg    *telegram.Server
	ai    *openai.Server
	clock *stopwatch
	loops []*emulator.Loopback

	mu     sync.Mutex // guards all below
	chats  map[int64]*chat
	nextID int64
}

// chat is a person in a private chat with the bot.
type chat struct {
	id      int64
	asked   int
	answers chan answer // capacity 1
	want    string      // end of the complete answer; guarded by world.mu
}

// answer is a complete answer that has become visible.
type answer struct{ at time.Time }

func newWorld() (*world, error) {
	// Ids are new in every run: a PostgreSQL database may have seen earlier ones.
	unique := time.Now().UnixMilli()
	w := &world{
		token: strconv.FormatInt(unique, 10) + ":bench-token",
		clock: newStopwatch(),
		chats: make(map[int64]*chat), nextID: unique,
	}
	w.tg = telegram.New(telegram.Options{
		Token: w.token, BotUsername: "bench_bot", OnChange: w.changed,
		KeepEdits: -1, KeepCalls: -1, KeepMessages: 64,
	})
	w.ai = openai.New(openai.Options{APIKey: apiKey, KeepRequests: -1})
	w.ai.Script(reply)
	for _, h := range []struct {
		serve func() (*emulator.Loopback, error)
	}{
		{func() (*emulator.Loopback, error) { return emulator.Listen(w.clock.telegram(w.tg.Handler())) }},
		{func() (*emulator.Loopback, error) { return emulator.Listen(w.clock.model(w.ai.Handler())) }},
	} {
		loop, err := h.serve()
		if err != nil {
			w.close()
			return nil, fmt.Errorf("bench: start an emulator: %w", err)
		}
		w.loops = append(w.loops, loop)
	}
	return w, nil
}

func (w *world) telegramURL() string { return w.loops[0].URL() }
func (w *world) aiURL() string       { return w.loops[1].URL() + "/v1" }

func (w *world) close() {
	w.tg.Close()
	w.ai.Close()
	for _, l := range w.loops {
		l.Close()
	}
}

// check looks whether the bot did anything that it must not.
func (w *world) check() error {
	if refused := w.ai.Refusals(); len(refused) > 0 {
		return fmt.Errorf("bench: the model refused %d requests, the first: %s", len(refused), refused[0].Error.Message)
	}
	return nil
}

// reply is the model: it answers at once, in a few pieces, and repeats the mark
// at the end of the question.
func reply(r openai.Request) openai.Response {
	text := r.LastUserText()
	tag := text[strings.LastIndexByte(text, ' ')+1:]
	pieces := make([]string, 0, repeats+1)
	for range repeats {
		pieces = append(pieces, sentence)
	}
	return openai.Text(append(pieces, endMark+tag)...)
}

// newChats introduces people who have never written.
func (w *world) newChats(n int) []*chat {
	w.mu.Lock()
	defer w.mu.Unlock()
	chats := make([]*chat, n)
	for i := range chats {
		w.nextID++
		chats[i] = &chat{id: w.nextID, answers: make(chan answer, 1)}
		w.chats[w.nextID] = chats[i]
	}
	return chats
}

// changed is told of everything that becomes visible.
func (w *world) changed(c telegram.Change) {
	if !c.Message.FromBot {
		return
	}
	at := time.Now()
	w.mu.Lock()
	chat := w.chats[c.Message.ChatID]
	complete := chat != nil && chat.want != "" && strings.HasSuffix(c.Message.Text, chat.want)
	if complete {
		chat.want = "" // an edit that changes nothing more is not a second answer
	}
	w.mu.Unlock()
	if complete {
		chat.answers <- answer{at: at}
	}
}

// ask writes in a chat and waits until the complete answer is visible.
func (w *world) ask(ctx context.Context, c *chat) (sent, shown time.Time, err error) {
	c.asked++
	tag := fmt.Sprintf("%d-%d.", c.id, c.asked)
	w.mu.Lock()
	c.want = endMark + tag
	w.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	sent = time.Now()
	w.tg.SendText(c.id, c.id, question+tag)
	select {
	case a := <-c.answers:
		return sent, a.at, nil
	case <-timer.C:
		return sent, sent, fmt.Errorf("bench: no answer to message %d of a chat within %s", c.asked, patience)
	case <-ctx.Done():
		return sent, sent, context.Cause(ctx)
	}
}

// sequence lets chats write n messages each, one message at a time over all.
func (w *world) sequence(ctx context.Context, chats []*chat, n int) ([]stamps, error) {
	var all []stamps
	for range n {
		for _, c := range chats {
			w.clock.reset()
			sent, shown, err := w.ask(ctx, c)
			if err != nil {
				return nil, err
			}
			s := w.clock.read()
			s.sent, s.shown = sent, shown
			if s.delivered.IsZero() || s.requested.IsZero() || s.replied.IsZero() {
				return nil, errors.New("bench: an answer came without a poll or without the model")
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// calls returns how often the bot called the methods that show something.
func (w *world) calls() (n int) {
	for _, method := range []string{"sendMessage", "editMessageText", "sendChatAction", "setMessageReaction"} {
		n += w.tg.Count(method)
	}
	return n
}

// lifetime is how many messages a person writes until another takes over when
// many write at once, so that the figures are not those of long histories.
const lifetime = 25

// crowd lets people write n messages, so many of them at once, and returns how
// long each answer took.
func (w *world) crowd(ctx context.Context, people, n int) ([]time.Duration, error) {
	took := make([][]time.Duration, people)
	group, ctx := errgroup.WithContext(ctx)
	for i := range people {
		mine := n / people
		if i < n%people {
			mine++
		}
		group.Go(func() error {
			var c *chat
			for k := range mine {
				if k%lifetime == 0 {
					c = w.newChats(1)[0]
				}
				sent, shown, err := w.ask(ctx, c)
				if err != nil {
					return err
				}
				took[i] = append(took[i], shown.Sub(sent))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(took...), nil
}

// together lets chats write n messages each, all chats at once.
func (w *world) together(ctx context.Context, chats []*chat, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range chats {
		group.Go(func() error {
			for range n {
				if _, _, err := w.ask(ctx, c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
