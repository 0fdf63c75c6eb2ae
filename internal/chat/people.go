package chat

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/people"
)

func (h *Handler) peopleCommand() command.Command {
	return command.Command{
		Name:    "people",
		Usage:   "people [allow|remove <id>]",
		Summary: "who may use the bot",
		Example: "people allow telegram/42",
		Rank:    5,
		Owners:  true,
		Run:     h.runPeople,
	}
}

// change is one of the methods that change an account.
type change func(ctx context.Context, by people.By, a people.Account) (string, error)

func (h *Handler) runPeople(ctx context.Context, r command.Request) (command.Reply, error) {
	return h.changePeople(ctx, r, "people", map[string]change{"allow": h.config.People.Allow, "remove": h.config.People.Remove, "rm": h.config.People.Remove},
		func(list []people.Person) []people.Person { return list })
}

// changePeople does what the first argument says to the account that the second one names,
// or lists people.
func (h *Handler) changePeople(ctx context.Context, r command.Request, name string, verbs map[string]change, which func([]people.Person) []people.Person) (command.Reply, error) {
	args := r.Call.Args
	if len(args) == 0 || len(args) == 1 && strings.EqualFold(args[0], "list") {
		return h.listPeople(ctx, r, which)
	}
	do, ok := verbs[strings.ToLower(args[0])]
	if !ok || len(args) != 2 {
		usage := map[string]string{
			"people": "`/people` lists people, `/people allow <id>` lets one in, `/people remove <id>` shuts one out.",
			"owner":  "`/owner` lists owners, `/owner add <id>` makes one, `/owner rm <id>` takes the role away.",
		}
		return command.Reply{}, fault.New(fault.Invalid, usage[name]+" An id is the number or name that /whoami tells a person, or with the platform: `telegram/42`.")
	}
	a, err := h.config.People.Parse(args[1], r.Conv.Key.Platform)
	if err != nil {
		return command.Reply{}, err
	}
	said, err := do(ctx, people.Owner(r), a)
	return command.Reply{Text: said}, err
}

func (h *Handler) listPeople(ctx context.Context, r command.Request, which func([]people.Person) []people.Person) (command.Reply, error) {
	if !private(r.Entry.In) {
		return command.Reply{}, fault.New(fault.Forbidden, "Others read along here; ask me in a private chat.")
	}
	list, err := h.config.People.List(ctx)
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
