package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/platform/console"
	"remote-agent/internal/terminal"
)

// maxPiped is the longest text that is read from a pipe, in bytes.
const maxPiped = 1 << 20

// chatCommand talks to the bot: to the one that runs on the data directory, or to one
// that lives as long as the chat.
type chatCommand struct {
	Conversation string   `help:"Conversation to use. Default: a new one for a question, local for a chat." placeholder:"NAME" short:"c"`
	Text         []string `arg:"" help:"A question; text from a pipe is added to it. The answer goes to stdout; without one the exit code is 1." optional:""`
}

// Help implements commandline.Explained.
func (chatCommand) Help() string {
	return "Without a question, it opens a chat in this terminal. It uses the bot that runs on DATA_DIR, or runs one meanwhile. " +
		`Example: git diff | bot chat "review this". Send a file with @path.`
}

func (c chatCommand) Run(p *program) error {
	if c.Conversation != "" {
		if err := console.CheckConversation(c.Conversation); err != nil {
			return err
		}
	}
	text, quoted, err := c.question(p)
	if err != nil {
		return err
	}
	cfg, err := p.load()
	if err != nil {
		return err
	}
	chat, err := c.chat(p, cfg, text, quoted)
	if err != nil {
		return err
	}
	running, err := app.Running(p.ctx, cfg)
	if err != nil {
		return err
	}
	if running != nil {
		return chat(p.ctx, running, nil)
	}
	return p.chatAlone(cfg, text == "", chat)
}

// talk talks to a backend. quit ends the program, if it has more to end than the chat.
type talk func(ctx context.Context, b console.Backend, env *app.Env) error

// chat returns what is to be done with a backend: to ask, or to chat.
func (c chatCommand) chat(p *program, cfg config.Config, text, quoted string) (talk, error) {
	if text == "" && quoted == "" {
		return func(ctx context.Context, b console.Backend, env *app.Env) error {
			greeting := "No bot is running on " + cfg.DataDir + ", so this chat runs one while it is open."
			if env == nil {
				greeting = "Connected to the bot on " + cfg.DataDir + "."
				own := p.env(nil, true)
				own.Interrupt, env = nil, &own
			}
			chat := app.TerminalChat(cfg, *env)
			chat.Greeting = greeting + " Type a message, or /help. Ctrl-C stops an answer; press it twice to quit."
			chat.Conversation = cmp.Or(c.Conversation, console.Local)
			if env.Screen != nil {
				chat.Opened = func(t *terminal.Terminal) { env.Screen(t) }
			}
			return chat.Run(ctx, b)
		}, nil
	}
	fresh, err := console.FreshConversation()
	if err != nil {
		return nil, err
	}
	q := console.Question{Text: text, Quoted: quoted, Conversation: cmp.Or(c.Conversation, fresh), Out: p.stdout, Errors: p.stderr}
	if at, ok := p.terminalOut(); ok {
		q.Markdown = func(text string) string { return terminal.Render(at, text) }
	}
	if kind, _ := p.lookup("TERM"); isTerminal(p.stderr) && kind != "dumb" {
		stderr := p.stderr                                                                // not the writer that keeps logs apart from what is typed
		q.Progress = func(text string) { _, _ = io.WriteString(stderr, "\r\x1b[K"+text) } // nobody may look
	}
	return func(ctx context.Context, b console.Backend, _ *app.Env) error { return q.Ask(ctx, b) }, nil
}

// question returns what is asked, and what was piped in for it; nothing for a chat.
func (c chatCommand) question(p *program) (text, quoted string, err error) {
	text = strings.TrimSpace(strings.Join(c.Text, " "))
	if isPiped(p.stdin) {
		all, err := io.ReadAll(io.LimitReader(p.stdin, maxPiped+1))
		if err != nil {
			return "", "", fault.Wrap(err, fault.Invalid, "read the input")
		}
		if len(all) > maxPiped {
			return "", "", fault.New(fault.Invalid, "the input is longer than 1 MiB; send less of it, or name the file with @path")
		}
		if quoted = strings.Trim(strings.ToValidUTF8(string(all), "\uFFFD"), "\r\n"); strings.TrimSpace(quoted) == "" {
			quoted = ""
		}
	}
	switch {
	case text == "" && quoted == "" && !bothTerminals(p.process):
		return "", "", fault.New(fault.Invalid, `there is nothing to ask: bot chat "question", or pipe text into it`)
	case text != "" && quoted != "":
		quoted = fenced(quoted)
	}
	return text, quoted, nil
}

// fenced marks a text as one that is to be read as it is.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}

// chatAlone runs a bot for as long as the chat takes.
func (p *program) chatAlone(cfg config.Config, interactive bool, chat talk) error {
	screen := &screenWriter{to: p.stderr}
	p.stderr = screen
	log, closeLog, err := p.newLogger(cfg, true)
	if err != nil {
		return err
	}
	defer closeLog()
	env := p.env(log, true)
	env.Terminal, env.Screen, env.Quiet = interactive, screen.redirect, true
	var result error
	ctx, stop := context.WithCancel(context.WithoutCancel(p.ctx))
	defer stop()
	begun := context.AfterFunc(p.ctx, stop)
	env.Chat = func(ctx context.Context, b console.Backend) error {
		begun() // the chat ends first: only a bot that runs can stop what was asked
		ctx, end := context.WithCancel(ctx)
		defer end()
		defer context.AfterFunc(p.ctx, end)() //nolint:contextcheck // either of them ends it
		result = chat(ctx, b, &env)
		return nil
	}
	return errors.Join(app.Run(ctx, cfg, env), result)
}
