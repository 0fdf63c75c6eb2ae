package pages

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/html"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/wording"
)

// Repository is what only the workspace knows of a repository.
type Repository struct {
	Branch    string // that worktrees start from; empty if there is none
	Worktrees []Worktree
}

// Worktree is a copy that a conversation works in.
type Worktree struct {
	ConversationID, Branch string
	Made                   time.Time
}

const (
	reposPage    = 100
	maxWorktrees = 100
	maxCommands  = 200
	repoPatience = 3 * time.Second // for git
)

// repoPages are the repositories.
type repoPages struct {
	storage   Storage
	show      *renderer
	workspace func(ctx context.Context, c sessions.Codebase) (Repository, error) // nil: it knows nothing
}

func (p *repoPages) routes(to *Pages) {
	to.page("GET /repos", p.repos)
	to.page("GET /repos/{id}", p.repo)
}

// repos lists the repositories.
func (p *repoPages) repos(r *request) (view, error) {
	if err := r.plain("after"); err != nil {
		return view{}, err
	}
	after, ctx := r.URL.Query().Get("after"), r.Context()
	all, err := store.Within(ctx, p.storage.InRead, func(tx *store.Tx) ([]sessions.Codebase, error) { return tx.Registry().List(ctx) })
	if err != nil {
		return view{}, err
	}
	list := slices.DeleteFunc(all, func(c sessions.Codebase) bool { return after != "" && c.Name <= after })
	body := html.Group{html.Tag("h1", "Repositories")}
	more := len(list) > reposPage
	list = list[:min(len(list), reposPage)]
	body = append(body, listed(html.Map(list, func(c sessions.Codebase) html.Node {
		return html.El("li", html.El("span", html.Class("what"), html.Link("/repos/"+c.ID, p.show.head200(c.Name))),
			meta(p.address(c)), linkButton(sessionsOf(c), "Sessions"))
	}), "No repositories. Send /clone owner/repo in a chat, or run bot repo add on the server, which also takes a local folder."))
	if more {
		body = append(body, older(r, "after", list[len(list)-1].Name, "", "More repositories"))
	}
	return view{title: "Repositories", body: body}, nil
}

func sessionsOf(c sessions.Codebase) string {
	return "/sessions?" + url.Values{"repository": {c.ID}}.Encode()
}

// address is where a repository comes from.
func (p *repoPages) address(c sessions.Codebase) string {
	if c.RepositoryURL == "" {
		return "a folder on the server"
	}
	return p.show.head200(c.RepositoryURL)
}

// repo shows a repository.
func (p *repoPages) repo(r *request) (view, error) {
	ctx, used := r.Context(), 0
	var c sessions.Codebase
	var commands map[string]sessions.CommandDef
	err := p.storage.InRead(ctx, func(tx *store.Tx) (err error) {
		if c, err = tx.Registry().Codebase(ctx, r.PathValue("id")); err != nil {
			return err
		}
		if used, err = tx.Registry().CodebaseUse(ctx, c.ID); err != nil {
			return err
		}
		commands, err = tx.Registry().CodebaseCommands(ctx, c.ID)
		return err
	})
	if fault.Is(err, fault.Invalid) {
		err = fault.New(fault.NotFound, "There is no such repository.") // nor can there be
	}
	if err != nil {
		return view{}, err
	}
	facts := html.Group{fact("Address", html.Text(p.address(c)))}
	var trees html.Node
	if r.owner() {
		facts = append(facts, fact("Folder", html.Tag("code", p.show.head200(c.DefaultCwd))), fact("Conversations", html.Textf("%d", used)))
		branch, found, err := p.worktrees(ctx, c)
		if err != nil {
			return view{}, err
		}
		facts, trees = append(facts, branch), found
	}
	facts = append(facts, fact("Assistant on GitHub, where it is set up", html.Text(c.Assistant)), fact("Added", p.show.when(c.CreatedAt)),
		fact("Access", html.Text("Members and owners of the bot can work on it, each conversation in its own worktree; viewers can ask about it. On GitHub, people with write access to the repository can use it.")))
	return view{title: c.Name, body: html.Group{html.Tag("h1", p.show.head200(c.Name)), html.El("dl", facts),
		html.El("p", linkButton(sessionsOf(c), "Its sessions"), html.Text(" "), linkButton("/repos", "All repositories")),
		p.commandFiles(commands), trees}}, nil
}

// commandFiles are the prompts that a repository brings.
func (p *repoPages) commandFiles(commands map[string]sessions.CommandDef) html.Node {
	heading := html.Tag("h2", "Commands")
	if len(commands) == 0 {
		return html.Group{heading, emptyText("No command files. Markdown files in .claude/commands or .agents/commands in the repository become commands once /load_commands or bot repo sync has read them.")}
	}
	names := slices.Sorted(maps.Keys(commands))
	more := len(names) - maxCommands
	names = names[:min(len(names), maxCommands)]
	return html.Group{heading, table([]string{"Command", "What it does", "File"}, html.Map(names, func(name string) html.Node {
		def := commands[name]
		return html.El("tr", html.El("th", html.Attr("scope", "row"), html.Tag("code", p.show.head200(name))), html.Tag("td", p.show.head200(def.Description)), html.El("td", html.Tag("code", p.show.head200(def.Path))))
	})), html.If(more > 0, html.Styled("p", "muted", fmt.Sprintf("%d more are not shown.", more)))}
}

// worktrees asks the workspace, which may not have a repository that another process
// works on.
func (p *repoPages) worktrees(ctx context.Context, c sessions.Codebase) (branch, list html.Node, err error) {
	heading := html.Tag("h2", "Worktrees")
	if p.workspace == nil {
		return nil, nil, nil
	}
	asked, cancel := context.WithTimeout(ctx, repoPatience)
	defer cancel()
	about, err := p.workspace(asked, c)
	if err != nil {
		return fact("Default branch", html.Text("unknown")), html.Group{heading, html.Styled("p", "problem", p.show.head200(fault.Public(err)))}, nil
	}
	branch = fact("Default branch", html.Text("none"))
	if about.Branch != "" {
		branch = fact("Default branch", html.Tag("code", p.show.head200(about.Branch)))
	}
	if len(about.Worktrees) == 0 {
		return branch, html.Group{heading, emptyText("No worktrees. A conversation gets one, on its own branch, with its first turn on this repository; idle ones are put away.")}, nil
	}
	shown := about.Worktrees[:min(len(about.Worktrees), maxWorktrees)]
	keys := make(map[string]messages.ConversationKey, len(shown))
	err = p.storage.InRead(ctx, func(tx *store.Tx) error {
		for _, w := range shown {
			conv, err := tx.Conversations().Conversation(ctx, w.ConversationID)
			if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
				continue // it was deleted, and its worktree is not put away yet
			}
			if err != nil {
				return err
			}
			keys[w.ConversationID] = conv.Key
		}
		return nil
	})
	list = html.Group{html.Tag("h2", fmt.Sprintf("Worktrees (%d)", len(about.Worktrees))), table([]string{"Conversation", "Branch", "Created"}, html.Map(shown, func(w Worktree) html.Node {
		name := "a deleted conversation"
		if key, ok := keys[w.ConversationID]; ok {
			name = chatName(string(key.Platform), key.ID)
		}
		return html.El("tr", html.El("th", html.Attr("scope", "row"), html.Text(wording.Head(name, 200))), html.El("td", html.Tag("code", p.show.head200(w.Branch))), html.El("td", p.show.when(w.Made)))
	}))}
	return branch, list, err
}
