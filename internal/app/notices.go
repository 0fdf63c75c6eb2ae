package app

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"

	"remote-agent/internal/terminal"
	"remote-agent/internal/wording"
)

// notices are what the program tells whoever started it.
type notices struct {
	env    Env
	log    *slog.Logger
	screen atomic.Pointer[terminal.Terminal] // set while the console has the terminal
}

// writer returns where the program tells what it does: the console's screen where
// there is one, else stderr, so that a pipe gets answers only.
func (n *notices) writer() io.Writer {
	if screen := n.screen.Load(); screen != nil {
		return screen
	}
	if n.env.Terminal {
		return n.env.Stdout
	}
	return n.env.Stderr
}

// logsOnly reports whether nothing but the log may be written.
func (n *notices) logsOnly() bool { return n.env.LogOnly && !n.env.Terminal }

// bannerIndent is where the lines of the banner say something, in columns.
const bannerIndent = 12

// say writes to the person who started the program. The start must not depend
// on somebody reading it.
func (n *notices) say(format string, args ...any) {
	if n.env.Quiet {
		return
	}
	text := fmt.Sprintf(format, args...)
	if n.logsOnly() {
		for line := range strings.Lines(text) {
			if line = wording.OneLine(line); line != "" {
				n.log.Info(line, "component", "start") //nolint:sloglint // what is said on a screen elsewhere
			}
		}
		return
	}
	if n.env.Terminal {
		text = terminal.Fold(terminalOf(n.env), text, bannerIndent)
	}
	_, _ = io.WriteString(n.writer(), text) // a closed terminal
}
