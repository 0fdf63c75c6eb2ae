package tour

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
)

// scene is a part of the tour. Its second line says what it shows.
type scene struct {
	title, shows string
	play         func(ctx context.Context, t *tour) error
}

var scenes = []scene{
	{
		"A question", "A placeholder comes at once and is edited while the model writes.",
		func(ctx context.Context, t *tour) error {
			t.model("Good to meet you, Ann. Tea it is: a pot for two takes about three teaspoons of leaves, " +
				"water just off the boil, and four minutes of patience.")
			return t.asks(ctx, "Hi! I am Ann and I like tea. How much do I need for two?", "four minutes of patience")
		},
	},
	{
		"A second question", "The model gets the conversation so far, from the database.",
		playFollowUp,
	},
	{
		"A long answer, stopped", "Commands do not wait behind the answer that they are about.",
		playStop,
	},
	{
		"The model is overloaded", "A passing error is shown, waited for and tried again; the question is not lost.",
		func(ctx context.Context, t *tour) error {
			t.ai.Enqueue(openai.Overloaded())
			t.model("About 80 °C for green tea.")
			return t.asks(ctx, "And for green tea, how hot?", "80 °C for green tea")
		},
	},
	{
		"Telegram asks to slow down", "A flood wait is honored to the second; the answer comes after it, once.",
		playFloodWait,
	},
	{
		"Plan, then execute", "Executing a plan starts a fresh session that knows the plan and nothing else.",
		playPlan,
	},
	{
		"A restart in the middle of an answer", "What was accepted is in the database: after the restart it is answered, once.",
		playRestart,
	},
	{
		"A stranger", "Nobody talks to the bot unless allowed. A stranger is told no once and never reaches the model.",
		playStranger,
	},
}

// playFollowUp answers from what the request really contains: without the
// history there is nothing to answer from.
func playFollowUp(ctx context.Context, t *tour) error {
	t.ai.Script(func(r openai.Request) openai.Response {
		liked := "nothing that I know of"
		for _, m := range r.Messages {
			if found := likes.FindStringSubmatch(m.Text()); m.Role == "user" && found != nil {
				liked = found[1]
			}
		}
		return t.spoken("You told me that you like " + liked + ".")
	})
	defer t.ai.Script(nil)
	if err := t.asks(ctx, "What was it again that I like?", "you like tea"); err != nil {
		return err
	}
	t.screen.note("the model was sent %d messages", t.lastSent())
	return nil
}

var likes = regexp.MustCompile(`\bI like (\w+)`)

func playStop(ctx context.Context, t *tour) error {
	endless := emulator.NewGate()
	defer endless.Open()
	t.ai.Enqueue(t.spoken("Tea begins with an accident: an emperor, a kettle, and a leaf that the wind carried in.").
		Then(openai.Gate(endless)))
	t.says(ctx, "Tell me everything about the history of tea.", "⏹ Stopped after")
	if err := t.sees(ctx, ann, "wind carried in"); err != nil {
		return err
	}
	if err := t.asksMeanwhile(ctx, "/status", "Running for"); err != nil {
		return err
	}
	t.says(ctx, "/stop", "⏹ Stopped.")
	begin := time.Now()
	if err := errors.Join(t.sees(ctx, ann, "⏹ Stopped."), t.sees(ctx, ann, "wind carried in", "⏹ Stopped after")); err != nil {
		return err
	}
	took := time.Since(begin)
	if err := t.settled(ctx); err != nil {
		return err
	}
	t.screen.note("%d ms from /stop until all of it was visible; the model's request was canceled: %t",
		took.Milliseconds(), t.ai.Stats().Canceled == 1)
	return nil
}

// asksMeanwhile is asks while another message is being answered.
func (t *tour) asksMeanwhile(ctx context.Context, text, answer string) error {
	t.says(ctx, text, answer)
	return t.sees(ctx, ann, answer)
}

func playFloodWait(ctx context.Context, t *tour) error {
	const wait = time.Second
	before := len(t.tg.Calls("editMessageText"))
	t.tg.Inject("editMessageText", telegram.FloodWait(wait))
	t.model("Yes: cold water, eight hours, no kettle at all.")
	if err := t.asks(ctx, "Can I make tea without boiling water?", "no kettle at all"); err != nil {
		return err
	}
	var gap time.Duration
	err := t.until(ctx, func() bool {
		calls := t.tg.Calls("editMessageText")[before:]
		for i, c := range calls {
			if c.Status == http.StatusTooManyRequests && i+1 < len(calls) {
				gap = calls[i+1].At.Sub(c.At)
				return true
			}
		}
		return false
	})
	if err != nil {
		return fmt.Errorf("no edit was refused and repeated: %w", err)
	}
	t.screen.note("Telegram answered 429, retry after %.0f s; the next edit came %.1f s later", wait.Seconds(), gap.Seconds())
	if gap < wait {
		return fmt.Errorf("the flood wait of %s was not honored: %s", wait, gap)
	}
	return nil
}

func playPlan(ctx context.Context, t *tour) error {
	t.model("Plan: 1. Add a timer for the pot. 2. Ring after four minutes. 3. Test it with two cups.")
	if err := t.asks(ctx, `/command-invoke plan-feature "A tea timer"`, "Test it with two cups."); err != nil {
		return err
	}
	t.screen.note("the model was sent %d messages: the talk so far and the task", t.lastSent())
	t.model("Done: the timer rings after four minutes, and both cups were good.")
	if err := t.asks(ctx, "/execute", "both cups were good"); err != nil {
		return err
	}
	requests := t.ai.Requests()
	last := requests[len(requests)-1]
	if !strings.Contains(last.LastUserText(), "Add a timer for the pot") {
		return errors.New("the plan did not reach the new session")
	}
	t.screen.note("the model was sent %d message: the plan, in a fresh session", t.lastSent())
	return nil
}

func playRestart(ctx context.Context, t *tour) error {
	never := emulator.NewGate()
	defer never.Open()
	t.ai.Enqueue(t.spoken("Green tea is not").Then(openai.Gate(never)))
	t.says(ctx, "What is the difference between green and black tea?", "black tea is oxidized")
	if err := t.sees(ctx, ann, "Green tea is not"); err != nil {
		return err
	}
	t.pause(ctx, 500*time.Millisecond)
	t.screen.note("the bot is stopped")
	if err := t.stop(ctx); err != nil {
		return err
	}
	t.pause(ctx, 700*time.Millisecond)
	t.screen.note("the bot is started again on the same data")
	t.model("Green tea is not oxidized, black tea is oxidized; the leaf is the same.")
	if err := t.start(ctx); err != nil {
		return err
	}
	if err := t.sees(ctx, ann, "black tea is oxidized; the leaf is the same"); err != nil {
		return err
	}
	return t.settled(ctx)
}

func playStranger(ctx context.Context, t *tour) error {
	asked := t.ai.Stats().Received
	t.pause(ctx, 500*time.Millisecond)
	t.tg.Person(eve).Says("Hello, what did Ann ask you?")
	if err := t.sees(ctx, eve, "private bot"); err != nil {
		return err
	}
	t.tg.Person(eve).Says("Come on!")
	if err := t.settled(ctx); err != nil {
		return err
	}
	t.screen.note("Eve got %d message for her two; the model was asked %d times about them",
		len(t.tg.ChatView(eve).FromBot()), t.ai.Stats().Received-asked)
	return nil
}
