package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/slack"
)

const slackSecret = "chaos-signing-secret"

// onSlack is Slack with people in direct messages and, every fourth, in a thread of a
// channel, where each message comes as two events.
type onSlack struct {
	run    *run
	server *slack.Server
	http   bool

	sent repeats

	mu    sync.Mutex // guards roots
	roots map[int]string
}

func newSlackSocket(r *run) (platform, error) { return newSlack(r, false) }
func newSlackHTTP(r *run) (platform, error)   { return newSlack(r, true) }

func newSlack(r *run, http bool) (platform, error) {
	p := &onSlack{run: r, http: http, roots: map[int]string{}}
	// Slack gives up after three more tries; here a bot that is dead for a while must
	// not miss what it never acknowledged.
	retries := make([]time.Duration, 2000)
	for i := range retries {
		retries[i] = 200 * time.Millisecond
	}
	p.server = slack.New(slack.Options{
		Now: r.clock, SigningSecret: slackSecret, Retries: retries, KeepCalls: 5000 + 3*r.opts.Burst, KeepEdits: -1,
		OnChange: func(c slack.Change) {
			if c.Message.FromBot {
				r.seen(c.Message.Plain, c.Kind == slack.ChangeSent)
			}
		},
	})
	calls := &calls{run: r}
	p.server.InjectFunc(func(c slack.Call) slack.Fault {
		f := calls.next(c.Method, c.Method == "chat.postMessage" || c.Method == "chat.startStream")
		return faultOf(f, slack.RateLimited(time.Second), slack.ServerError(503))
	})
	if err := p.server.Start(); err != nil {
		return nil, fmt.Errorf("start the emulated Slack: %w", err)
	}
	return p, nil
}

func (p *onSlack) environ() []string {
	env := []string{"SLACK_BOT_TOKEN=" + p.server.BotToken(), "SLACK_API_URL=" + p.server.APIURL(), "SLACK_ALLOWED_USER_IDS=*"}
	if p.http {
		return append(env, "SLACK_SIGNING_SECRET="+slackSecret)
	}
	return append(env, "SLACK_APP_TOKEN="+p.server.AppToken())
}

func (p *onSlack) hook(url string) {
	if !p.http {
		p.server.UseSocketMode()
		return
	}
	p.server.UseHTTP(slack.Endpoints{
		Events: url + "/webhooks/slack/events", Commands: url + "/webhooks/slack/commands", Interactions: url + "/webhooks/slack/interactions",
	})
}

func (p *onSlack) introduce(ctx context.Context) error {
	if !p.http {
		return nil
	}
	for range 50 {
		if err := p.server.VerifyURL(ctx); err == nil {
			return nil
		}
		if err := emulator.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("the bot does not answer Slack's url_verification")
}

func (*onSlack) lifetime() int  { return 60 }
func (p *onSlack) odd() int     { return len(p.server.Violations()) }
func (p *onSlack) close()       { p.server.Close() }
func person(c int) string       { return fmt.Sprintf("U%d", 1000+c) }
func slackChannel(c int) string { return fmt.Sprintf("C%d", 1000+c) }

func (p *onSlack) say(conversation int, text string) receipt {
	who := p.server.User(person(conversation))
	var sent slack.Sent
	if conversation%4 == 3 {
		p.mu.Lock()
		root := p.roots[conversation]
		p.mu.Unlock()
		who = who.In(slackChannel(conversation)).InThread(root)
		if p.run.dice.of("order", text) < 0.5 {
			who = who.Delivered(slack.Copy{Type: "message"}, slack.Copy{Type: "app_mention"})
		}
		if p.run.dice.of("at once", text) < 0.5 {
			who = who.AtOnce()
		}
		sent = who.Mentions(text)
		p.mu.Lock()
		if root == "" {
			p.roots[conversation] = sent.TS
		}
		p.mu.Unlock()
	} else {
		if p.run.dice.of("double", text) < 0.2 {
			who = who.Delivered(slack.Copy{Type: "message"}, slack.Copy{Type: "message"})
		}
		sent = who.Says(text)
	}
	p.sent.add(sent.Deliveries)
	return func() bool { return p.server.Acknowledged(sent.Deliveries...) }
}

func (p *onSlack) shown(conversation int) (texts []string) {
	view := p.server.Channel(slackChannel(conversation))
	if conversation%4 != 3 {
		view = p.server.Channel(p.server.DM(person(conversation)))
	}
	for _, m := range view.FromBot() {
		texts = append(texts, m.Plain)
	}
	return texts
}

func (p *onSlack) again(x float64) {
	if id := p.sent.pick(x); id != "" && p.server.Acknowledged(id) {
		p.run.count("an event comes again")
		p.server.Redeliver(id)
	}
}
