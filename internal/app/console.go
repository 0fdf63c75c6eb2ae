package app

import (
	"context"
	"os"
	"path/filepath"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform/console"
	"remote-agent/internal/terminal"
)

// newConsole makes the adapter of the console.
func (d *daemon) newConsole() *console.Adapter {
	return console.New(console.Config{
		State: func(ctx context.Context, key messages.ConversationKey) (idle bool, questions []string, err error) {
			return d.core.Idle(ctx, key)
		},
		Commands: func() []string { return d.chat.Names() },
		Chat:     d.consoleChat(),
	})
}

// consoleChat returns what happens at this process's own console; nil if it has none.
func (d *daemon) consoleChat() func(ctx context.Context, b console.Backend) error {
	switch {
	case !d.env.Console:
		return nil
	case d.env.Chat != nil:
		return d.env.Chat
	case d.env.Terminal:
		chat := TerminalChat(d.config, d.env)
		chat.Opened = func(t *terminal.Terminal) {
			d.notices.screen.Store(t)
			if d.env.Screen != nil {
				d.env.Screen(t)
			}
		}
		return chat.Run
	default:
		pipe := console.Pipe{In: d.env.Stdin, Out: d.env.Stdout, Errors: d.env.Stderr, Conversation: console.Local}
		return func(ctx context.Context, b console.Backend) error {
			if err := pipe.Run(ctx, b); ctx.Err() == nil {
				d.piped = err
			}
			return nil // it has ended, whatever the reason
		}
	}
}

// TerminalChat returns the chat of a person at the terminal of env, with what was
// typed before in the data directory.
func TerminalChat(cfg config.Config, env Env) console.Chat {
	c := terminalOf(env)
	history, err := terminal.OpenHistory(historyPath(cfg), console.Keeps(newRedactor(cfg, env)))
	if err != nil {
		say(env.Stderr, "Cannot load the input history: %s\n", fault.Public(err))
	}
	c.Prompt, c.History, c.Signals = "you> ", history, env.Catch
	return console.Chat{Terminal: c, Conversation: console.Local, Quit: env.Interrupt}
}

// historyPath is where what was typed at the console is kept.
func historyPath(cfg config.Config) string { return filepath.Join(cfg.DataDir, "console_history") }

func terminalOf(env Env) terminal.Config {
	in, isFile := env.Stdin.(*os.File)
	if out, ok := env.Stdout.(*os.File); ok && isFile {
		return terminal.Of(in, out, env.lookup)
	}
	return terminal.Config{In: env.Stdin, Out: env.Stdout, Plain: true}
}

// lookup finds a variable of the process environment.
func (e Env) lookup(name string) (string, bool) {
	if e.Lookup == nil {
		return "", false
	}
	return e.Lookup(name)
}
