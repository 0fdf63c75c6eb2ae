package chat

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/work"
)

func (re *repositories) repoCommand() *command.Command {
	return &command.Command{
		Name:    "repo",
		Usage:   "repo <name|number>",
		Summary: "switch to another repository",
		Example: "repo shop",
		Reading: command.ReadingAside,
		Lane:    command.Ahead,
		Needs:   command.Repositories,
		Run:     re.runRepo,
	}
}

func (re *repositories) runRepo(ctx context.Context, r command.Request) (command.Reply, error) {
	if len(r.Call.Args) == 0 {
		return re.runRepos(ctx, r)
	}
	all, err := store.Within(ctx, re.store.InRead, func(tx *store.Tx) ([]sessions.Codebase, error) { return tx.Registry().List(ctx) })
	if err != nil {
		return command.Reply{}, err
	}
	c, err := work.Choose(all, strings.Join(r.Call.Args, " "), "/repos")
	if err != nil {
		return command.Reply{}, err
	}
	ended, err := re.useCodebase(ctx, r, c.ID, "")
	if err != nil {
		return command.Reply{}, err
	}
	return command.Reply{Text: fmt.Sprintf("This conversation works on **%s**.%s", c.Name, ended)}, nil
}

// useCodebase makes a conversation work on a codebase and folder. The active session
// ends: what it knew was about something else. It returns what to say of that.
func (re *repositories) useCodebase(ctx context.Context, r command.Request, codebaseID, cwd string) (string, error) {
	ended := ""
	err := whenIdle(ctx, re.store, func(tx *store.Tx) error {
		ended = ""
		conv, _, err := tx.Conversations().GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant) // locks it
		if err != nil {
			return err
		}
		if conv.CodebaseID == codebaseID && conv.Cwd == cwd {
			return nil
		}
		head, ok, err := tx.Inbox().NextEntry(ctx, conv.ID)
		if err != nil {
			return err
		}
		if ok && head.State == sessions.EntryRunning && head.ID != r.Entry.ID {
			return busy(re.prefix(r.Conv.Key), "switch")
		}
		if err := tx.Conversations().UpdateConversation(ctx, conv.ID, sessions.ConversationUpdate{CodebaseID: &codebaseID, Cwd: &cwd}); err != nil {
			return err
		}
		active, ok, err := tx.Sessions().ActiveSession(ctx, conv.ID)
		if err != nil || !ok {
			return err
		}
		ended = " The session ended; your next message starts a new one."
		if err := tx.Sessions().DeactivateSession(ctx, active.ID, "codebase"); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{
			Actor: r.Actor(), Action: "conversation.codebase", ConversationID: conv.ID, Target: codebaseID, Detail: strconv.Quote(cwd),
		})
	})
	if err != nil {
		return "", fmt.Errorf("switch the repository: %w", err)
	}
	re.showMenu(ctx, r.Conv, codebaseID)
	return ended, nil
}

// maxMenu is how many commands of a repository a platform's menu gets; people
// have to find the others with /commands.
const maxMenu = 50

// showMenu puts the commands of a repository into the chat's menu, best effort.
func (re *repositories) showMenu(ctx context.Context, conv sessions.Conversation, codebaseID string) {
	menu, ok := re.platforms[conv.Key.Platform].(platform.ChatMenu)
	if !ok {
		return
	}
	all, err := re.work.Commands(ctx, codebaseID)
	if err == nil {
		var entries []platform.CommandInfo
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if def := all[name]; def.Path != "" && len(entries) < maxMenu {
				entries = append(entries, platform.CommandInfo{Name: name, Description: cmp.Or(def.Description, def.Path)})
			}
		}
		err = menu.SetChatMenu(ctx, conv.Key, entries)
	}
	if err != nil {
		re.log.InfoContext(ctx, "could not show a repository's commands in the menu", "conversation", conv.Key, "err", err)
	}
}
