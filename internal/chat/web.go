package chat

import (
	"context"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/signin"
)

func webCommand(link Link) *command.Command {
	return &command.Command{
		Name:    "web",
		Usage:   "web",
		Summary: "get a link to the web pages",
		Example: "web",
		Details: "The link signs you in with your own role. It works once, for 5 minutes.",
		Reading: command.ReadingAside,
		Where:   command.Aside,
		Needs:   command.Pages,
		Run: func(ctx context.Context, r command.Request) (command.Reply, error) {
			return runWeb(ctx, r, link)
		},
	}
}

// runWeb shows a fresh link, of which only the hash is stored. Shown again after a crash
// it is another one.
func runWeb(ctx context.Context, r command.Request, linkTo Link) (command.Reply, error) {
	if !private(r.Entry.In) {
		return command.Reply{}, fault.New(fault.Invalid, "The link is private. Send this in a private chat with me.")
	}
	link, local, err := linkTo(ctx, signin.Account{Platform: r.Entry.In.Home(), ID: r.Entry.In.Sender.ID})
	if err != nil {
		return command.Reply{}, err
	}
	text := "This link signs you in to the web pages. It works once, for 5 minutes. **Anyone who opens it acts as you, so keep it secret.**"
	if local {
		text += " It works only on the machine that I run on, because PUBLIC_URL is not set."
	}
	return command.Reply{Text: text, Unkept: link}, nil
}
