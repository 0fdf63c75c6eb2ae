package chat

import (
	"context"
	"fmt"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/people"
	"remote-agent/internal/sessions"
)

func (ac *access) peopleCommand() *command.Command {
	return &command.Command{
		Name:    "people",
		Usage:   "people [allow|deny|remove <id|code>]",
		Summary: "list and change who can use the bot",
		Details: "`people allow WDJ-BMJ read-only` allows questions only; `people deny WDJ-BMJ` refuses the request.",
		Example: "people allow WDJ-BMJ",
		Rank:    5,
		Owners:  true,
		Run:     ac.runPeople,
	}
}

// change is one of the methods that change an account.
type change func(ctx context.Context, by people.By, a people.Account) (string, error)

func (ac *access) runPeople(ctx context.Context, r command.Request) (command.Reply, error) {
	args := r.Call.Args
	if len(args) == 0 || len(args) == 1 && strings.EqualFold(args[0], "list") {
		return ac.listPeople(ctx, r)
	}
	role := sessions.User
	if len(args) > 2 && readOnly(args[2:]) {
		args, role = args[:2], sessions.Reader
	}
	verb := strings.ToLower(args[0])
	if len(args) == 2 && (verb == "allow" || verb == "deny") && people.IsCode(args[1]) {
		if verb == "deny" {
			role = sessions.Stranger
		}
		return ac.answerRequest(ctx, r, people.Request{Code: args[1]}, role)
	}
	if verb == "deny" {
		return command.Reply{}, fault.New(fault.Invalid, "Specify the code of a request: `/people deny WDJ-BMJ`. `/people` lists the requests, and `/people remove <id>` blocks someone permanently.")
	}
	return ac.changePeople(ctx, r, "people", args, map[string]change{
		"allow": func(ctx context.Context, by people.By, a people.Account) (string, error) {
			return ac.people.Allow(ctx, by, a, role)
		},
		"remove": ac.people.Remove, "rm": ac.people.Remove,
	})
}

// readOnly reports whether words say that somebody is to read only.
func readOnly(words []string) bool {
	switch strings.ToLower(strings.Trim(strings.Join(words, "-"), "-")) {
	case "read", "readonly", "read-only", "read_only":
		return true
	}
	return false
}

// changePeople does what the first argument says to the account that the second one names.
func (ac *access) changePeople(ctx context.Context, r command.Request, name string, args []string, verbs map[string]change) (command.Reply, error) {
	do, ok := verbs[strings.ToLower(args[0])]
	if !ok || len(args) != 2 {
		usage := map[string]string{
			"people": "`/people` lists people, `/people allow <id|code>` allows one, `/people allow <id|code> read-only` allows questions only, " +
				"`/people deny <code>` refuses a request, `/people remove <id>` removes one.",
			"owner": "`/owner` lists owners, `/owner add <id>` adds one, `/owner rm <id>` removes one.",
		}
		return command.Reply{}, fault.New(fault.Invalid, usage[name]+" `/whoami` shows a person's ID, such as `telegram/42`.")
	}
	a, err := ac.people.Parse(args[1], r.Conv.Key.Platform)
	if err != nil {
		return command.Reply{}, err
	}
	said, err := do(ctx, people.Owner(r), a)
	return command.Reply{Text: said}, err
}

// answerRequest decides on a stranger who requests access. The card whose button was
// pressed shows what holds, also to whoever comes second.
func (ac *access) answerRequest(ctx context.Context, r command.Request, req people.Request, role sessions.Role) (command.Reply, error) {
	said, err := ac.people.Answer(ctx, people.Owner(r), req, role)
	if err != nil && !fault.Is(err, fault.Conflict) {
		return command.Reply{}, err
	}
	if err != nil {
		said = fault.Public(err)
	}
	if r.Entry.In.Kind != messages.KindAction {
		return command.Reply{Text: said}, nil
	}
	cards, err := ac.people.Cards(ctx, req, r.Conv.ID, r.Entry.In.Message)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return command.Reply{}, err
	}
	return command.Reply{Text: said, Edits: cards}, nil
}

// pressedPairing answers a button under a card that asks about a stranger.
func (ac *access) pressedPairing(ctx context.Context, r command.Request, b command.Button) (command.Reply, error) {
	if r.Role != sessions.Owner {
		return command.Reply{}, fault.New(fault.Forbidden, "Only an owner of the bot can do that.")
	}
	role := map[string]sessions.Role{command.LetIn: sessions.User, command.LetInRead: sessions.Reader, command.LetOut: sessions.Stranger}[b.Decision]
	return ac.answerRequest(ctx, r, people.Request{Number: b.Number}, role)
}

func (ac *access) listPeople(ctx context.Context, r command.Request) (command.Reply, error) {
	text, err := ac.peopleText(ctx, r, func(list []people.Person) []people.Person { return list })
	if err != nil {
		return command.Reply{}, err
	}
	waiting, err := ac.people.Waiting(ctx)
	if err != nil || len(waiting) == 0 {
		return command.Reply{Text: text}, err
	}
	var b strings.Builder
	b.WriteString(text + "\nWaiting for an owner; decide with `/people allow <code>` or `/people deny <code>`:\n\n")
	for _, p := range waiting {
		fmt.Fprintf(&b, "- %s\n", people.WaitingLine(p))
	}
	return command.Reply{Text: b.String()}, nil
}

// peopleText lists people, in a chat that nobody else reads.
func (ac *access) peopleText(ctx context.Context, r command.Request, which func([]people.Person) []people.Person) (string, error) {
	if !private(r.Entry.In) {
		return "", fault.New(fault.Forbidden, "Others can read this chat; use a private one.")
	}
	list, err := ac.people.List(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range which(list) {
		fmt.Fprintf(&b, "- %s\n", p.Line())
	}
	if b.Len() == 0 {
		b.WriteString("Nobody has been given a role here; the configuration decides who can use the bot.\n")
	}
	return b.String(), nil
}
