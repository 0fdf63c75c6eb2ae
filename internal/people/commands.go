package people

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/sessions"
)

// Commands returns the chat commands, all of them for owners.
func (s *Service) Commands() []command.Command {
	return []command.Command{
		{Name: "people", Usage: "people [allow|remove <id>]", Summary: "who may use the bot (owners)", Run: s.runPeople},
		{Name: "owner", Usage: "owner [add|rm <id>]", Summary: "who owns the bot (owners)", Run: s.runOwner},
		{Name: "halt", Usage: "halt [why]", Summary: "stop everything, everywhere, until resume (owners)", Run: s.runHalt},
		{Name: "resume", Usage: "resume", Summary: "end a halt (owners)", Run: s.runResume},
	}
}

// change is one of the methods that change an account.
type change func(ctx context.Context, by By, a Account) (string, error)

func (s *Service) runPeople(ctx context.Context, r command.Request) (command.Reply, error) {
	return s.run(ctx, r, "people", map[string]change{"allow": s.Allow, "remove": s.Remove, "rm": s.Remove},
		func(list []Person) []Person { return list })
}

func (s *Service) runOwner(ctx context.Context, r command.Request) (command.Reply, error) {
	return s.run(ctx, r, "owner", map[string]change{"add": s.AddOwner, "rm": s.RemoveOwner, "remove": s.RemoveOwner}, Owners)
}

// run does what the first argument says to the account that the second one names,
// or lists people.
func (s *Service) run(ctx context.Context, r command.Request, name string, verbs map[string]change, which func([]Person) []Person) (command.Reply, error) {
	if r.Role != sessions.Owner {
		return command.Reply{}, fault.New(fault.Forbidden, "Only an owner of the bot can do that.")
	}
	args := r.Call.Args
	if len(args) == 0 || len(args) == 1 && strings.EqualFold(args[0], "list") {
		return s.list(ctx, r, which)
	}
	do, ok := verbs[strings.ToLower(args[0])]
	if !ok || len(args) != 2 {
		usage := map[string]string{
			"people": "`/people` lists people, `/people allow <id>` lets one in, `/people remove <id>` shuts one out.",
			"owner":  "`/owner` lists owners, `/owner add <id>` makes one, `/owner rm <id>` takes the role away.",
		}
		return command.Reply{}, fault.New(fault.Invalid, usage[name]+" An id is the number or name that /whoami tells a person, or with the platform: `telegram/42`.")
	}
	a, err := s.Parse(args[1], r.Conv.Key.Platform)
	if err != nil {
		return command.Reply{}, err
	}
	said, err := do(ctx, Owner(r), a)
	return command.Reply{Text: said}, err
}

func (s *Service) list(ctx context.Context, r command.Request, which func([]Person) []Person) (command.Reply, error) {
	if in := r.Entry.In; !in.Private && !in.Whispered {
		return command.Reply{}, fault.New(fault.Forbidden, "Others read along here; ask me in a private chat.")
	}
	list, err := s.List(ctx)
	if err != nil {
		return command.Reply{}, err
	}
	var b strings.Builder
	for _, p := range which(list) {
		fmt.Fprintf(&b, "- %s\n", p.Line())
	}
	if b.Len() == 0 {
		b.WriteString("Nobody was given a role; the configuration says who may come in.\n")
	}
	return command.Reply{Text: b.String()}, nil
}

func (s *Service) runHalt(ctx context.Context, r command.Request) (command.Reply, error) {
	if r.Role != sessions.Owner {
		return command.Reply{}, fault.New(fault.Forbidden, "Only an owner of the bot can halt it; `/stop` stops what runs here.")
	}
	said, err := s.Halt(ctx, Owner(r), r.Call.Rest)
	return command.Reply{Text: "⏸ " + said + " `/resume` ends it."}, err
}

func (s *Service) runResume(ctx context.Context, r command.Request) (command.Reply, error) {
	if r.Role != sessions.Owner {
		return command.Reply{}, fault.New(fault.Forbidden, "Only an owner of the bot can resume it.")
	}
	said, err := s.Resume(ctx, Owner(r))
	return command.Reply{Text: "▶ " + said}, err
}
