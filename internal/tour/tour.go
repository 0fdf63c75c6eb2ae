// Package tour plays a conversation on screen: the real program, as a process of its
// own, between an emulated Telegram, an emulated GitHub and an emulated model, as a
// person in Telegram would see it. A bug of a real repository is found, fixed and
// proposed; in the middle of it the program is killed.
//
// The model's words are scripted and the screen says so. Everything else is
// real: the database, the streaming, the retries, the kill. What the last
// lines count is read from what the emulated Telegram shows, not written here.
package tour

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// patience bounds every wait for the bot.
const patience = 30 * time.Second

// Options say how to play. Out is required.
type Options struct {
	Out      io.Writer
	Terminal bool // Out can redraw a line: answers grow in place
	Color    bool // Out understands colors
	Width    int  // columns of Out; default 80
	Fast     bool // no pauses, for tests
	Version  string

	// Program is this program: it is started as the bot, and killed. Environ is what
	// it and git need of the environment: PATH, and what the system asks for.
	Program string
	Environ []string

	// Input, if set, is what a person types to the bot after the tour, a message
	// a line, until its end.
	Input io.Reader
}

// Run plays the tour in a temporary directory, which it removes. It takes about
// half a minute, or a few seconds with Fast, needs git, binds loopback addresses only and
// calls nobody. It returns an error if a message was lost or answered twice,
// and nil if ctx ends: the person has seen enough.
func Run(ctx context.Context, opts Options) error {
	err := run(ctx, opts)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the person has seen enough
	}
	return err
}

func run(ctx context.Context, opts Options) error {
	if opts.Width <= 0 {
		opts.Width = 80
	}
	dir, err := os.MkdirTemp("", "bot-demo-")
	if err != nil {
		return fmt.Errorf("demo: make a directory for the data: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	t, err := open(ctx, opts, dir)
	if err != nil {
		return err
	}
	defer t.close()

	t.screen.header("Remote Agent "+opts.Version+": a tour",
		"Telegram, GitHub and the model are emulated. Answers are scripted, not an AI.",
		"The bot, its database, its sandbox and git are real; nothing leaves the machine.")
	if err := t.start(ctx); err != nil {
		return err
	}
	for i, s := range scenes {
		t.pause(ctx, 600*time.Millisecond)
		t.screen.scene(i+1, s.title, s.shows)
		if err := s.play(ctx, t); err != nil {
			t.screen.settle()
			return fmt.Errorf("demo: scene %d, %q: %w", i+1, s.title, err)
		}
		t.screen.settle()
	}
	sums, err := t.count(ctx)
	t.screen.header("What Telegram shows at the end", sums.lines()...)
	if err != nil {
		return err
	}
	if opts.Input != nil {
		if err := t.interactive(ctx); err != nil {
			return err
		}
	}
	return t.stop(ctx)
}

// errLost and errDoubled are what the tour is there to disprove.
var (
	errLost    = errors.New("demo: a message was lost")
	errDoubled = errors.New("demo: a message was answered twice")
)
