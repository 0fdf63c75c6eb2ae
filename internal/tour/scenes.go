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
	{"A question with a screenshot", "A placeholder comes at once and is edited while the model writes.", playScreenshot},
	{"A second question", "The model gets the conversation so far, from the database.", playFollowUp},
	{"A repository and a plan", "Nothing is changed before the plan is approved; people may edit it.", playPlan},
	{
		"Approved on the phone, killed in the middle",
		"Each command asks first and runs in a sandbox. What has run does not run again.", playWork,
	},
	{"The change, and a draft pull request", "The bot commits, pushes and proposes; merging is for people.", playPull},
	{"A long answer, stopped", "Commands do not wait behind the answer that they are about.", playStop},
	{
		"The model is overloaded", "A passing error is shown, waited for and tried again; nothing is lost.",
		func(ctx context.Context, t *tour) error {
			t.ai.Enqueue(openai.Overloaded())
			t.model("About 80 °C for green tea.")
			return t.asks(ctx, "And for green tea, how hot?", "80 °C for green tea")
		},
	},
	{"Telegram asks to slow down", "A flood wait is honored to the second; the answer comes after it, once.", playFloodWait},
	{"A stranger", "Nobody talks to the bot unless allowed. A stranger never reaches the model.", playStranger},
}

// playScreenshot answers what the picture shows, if the model got it.
func playScreenshot(ctx context.Context, t *tour) error {
	t.ai.Script(func(r openai.Request) openai.Response {
		for _, m := range r.Messages {
			if strings.Contains(string(m.RawContent), `"image_url"`) {
				return t.spoken("Hello Ann! In your screenshot the greeter prints \"Hello, !\": the name is missing. " +
					"Show me the repository and I will find out why.")
			}
		}
		return t.spoken("I see no picture.")
	})
	defer t.ai.Script(nil)
	err := t.shows(ctx, "greeter.png", screenshot, "Hi! I am Ann and I like tea. Why does our greeter not greet me?", "I will find out why")
	if err != nil {
		return err
	}
	t.screen.note("the model was sent the picture (%d bytes)", len(screenshot))
	return nil
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
	before := t.ai.Stats().Canceled
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
	canceled, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := t.ai.Wait(canceled, func(s openai.Stats) bool { return s.Canceled > before }); err != nil {
		return fmt.Errorf("the model's request goes on: %w", err)
	}
	if err := t.settled(ctx); err != nil {
		return err
	}
	t.screen.note("%d ms from /stop until all of it was visible; the model's request was canceled", took.Milliseconds())
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
	if err := t.asks(ctx, "/clone "+t.hub.cloneURL(), "Cloned"); err != nil {
		return err
	}
	t.model("1. Run the test and see it fail.\n2. Correct the variable in greet.sh.")
	if err := t.asks(ctx, "/plan make the greeter greet people by name", "Correct the variable"); err != nil {
		return err
	}
	t.says(ctx, "/edit p-1 1. Run the test and see it fail. 2. Use the first argument in greet.sh. 3. Run the test again.", "version 2")
	return t.sees(ctx, ann, "version 2")
}

// playWork carries the plan out. The bot is killed when the test has failed and the
// model thinks about it.
func playWork(ctx context.Context, t *tour) error {
	t.beside = append(t.beside, "✋ a-1", "✔ Worked for", "The test passes.")
	never := emulator.NewGate()
	defer never.Open()
	t.ai.Enqueue(openai.Calls(use("read_file", `{"path":"greet.sh"}`), use("bash", `{"command":"sh test.sh"}`)))
	if err := t.presses(ctx, "Approve and run"); err != nil {
		return err
	}
	if err := t.sees(ctx, ann, "sh test.sh", "a-1"); err != nil {
		return err
	}
	t.ai.Enqueue(t.spoken("The test fails").Then(openai.Gate(never)))
	if err := t.presses(ctx, "Always allow this"); err != nil {
		return err
	}
	if err := t.sees(ctx, ann, "The test fails"); err != nil {
		return err
	}
	failed := t.lastResult()
	t.screen.note("the sandbox ran the test: %s", failed)
	t.pause(ctx, 700*time.Millisecond)
	t.bot.Kill()
	t.screen.note("the bot is killed (SIGKILL), and started again on the same data")
	t.ai.Enqueue(
		openai.Calls(use("edit_file", `{"path":"greet.sh","old":"$nme","new":"$1"}`)),
		openai.Calls(use("bash", `{"command":"sh test.sh"}`)),
	)
	t.model("Done: greet.sh used a variable that nobody sets, and takes its first argument now. The test passes.")
	t.pause(ctx, 700*time.Millisecond)
	if err := t.start(ctx); err != nil {
		return err
	}
	if err := t.sees(ctx, ann, "The test passes."); err != nil {
		return err
	}
	passed := t.lastResult()
	t.screen.note("the sandbox ran the test again: %s", passed)
	if !strings.Contains(failed, "FAIL") || !strings.Contains(passed, "ok") {
		return fmt.Errorf("the test said %q and then %q", failed, passed)
	}
	return t.settled(ctx)
}

func use(tool, arguments string) openai.Call { return openai.Call{Name: tool, Arguments: arguments} }

// lastResult returns the first line of what a tool answered last, as the model got it.
func (t *tour) lastResult() string {
	requests := t.ai.Requests()
	last := ""
	for _, m := range requests[len(requests)-1].Messages {
		if m.Role == "tool" {
			last = m.Text()
		}
	}
	for line := range strings.Lines(last) {
		if i := strings.Index(line, "FAIL"); i >= 0 {
			return strings.TrimSpace(line[i:])
		}
		if strings.TrimSpace(line) == "ok" {
			return "ok"
		}
	}
	return last
}

func playPull(ctx context.Context, t *tour) error {
	if err := t.asks(ctx, "/diff", "Changes on"); err != nil {
		return err
	}
	if err := t.asks(ctx, "/pr Greet people by name", "draft pull request"); err != nil {
		return err
	}
	view, ok := t.hub.pull()
	if !ok || !view.Pull.Draft {
		return errors.New("there is no draft pull request")
	}
	t.screen.note("the emulated GitHub shows #%d, %q, a draft", view.Number, view.Title)
	return nil
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
