package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/confine"
	"remote-agent/internal/command"
	"remote-agent/internal/fault"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/platform"
	"remote-agent/internal/sessions"
)

var errNoCodebase = fault.New(fault.Invalid, "This conversation has no repository yet. `/clone <url>` gets one, `/repos` lists what is there.")

// runClone gets a repository, registers it with its command files, and makes
// the conversation work on it. The same URL again links: nothing is cloned
// twice. It is safe to repeat after a crash.
func (s *Shop) runClone(ctx context.Context, r command.Request) (command.Reply, error) {
	if len(r.Call.Args) != 1 {
		return command.Reply{}, fault.New(fault.Invalid, "Give one address: `/clone https://github.com/owner/repo` or `/clone owner/repo`.")
	}
	repo, err := s.space.Clone(ctx, r.Call.Args[0], func(p codebase.Progress) { r.Show(progressText(p)) })
	if err != nil {
		return command.Reply{}, fmt.Errorf("clone: %w", err)
	}
	c, _, problems, err := s.Register(ctx, repo)
	if err != nil {
		return command.Reply{}, err
	}
	cwd := ""
	if own, err := s.codebaseOf(ctx, r.Conv); err == nil && own.RepositoryURL != "" && own.RepositoryURL == repo.URL {
		c, cwd = own, r.Conv.Cwd // of several of one repository the conversation keeps its own
	}
	ended, err := s.use(ctx, r, c.ID, cwd)
	if err != nil {
		return command.Reply{}, err
	}
	verb := "Cloned"
	if repo.Existing {
		verb = "Already here, linked to"
	}
	text := fmt.Sprintf("%s **%s**.%s", verb, c.Name, ended)
	if n, err := s.countCommands(ctx, c.ID); err == nil && n > 0 {
		text += fmt.Sprintf(" It has %s: `/commands`.", plural(n, "command"))
	}
	return command.Reply{Text: withProblems(text, problems)}, nil
}

// Register stores a repository as a codebase, or finds it, and loads its command
// files. It reports whether the codebase is new, and what could not be loaded.
func (s *Shop) Register(ctx context.Context, repo codebase.Repo) (c sessions.Codebase, created bool, problems []string, err error) {
	commands, problems, err := loadDefaults(repo.Dir)
	if err != nil {
		return c, false, nil, err
	}
	err = s.storage.InTx(ctx, func(tx orchestrator.Tx) error {
		var ok bool
		of, err := s.bringHome(ctx, tx, repo)
		if err != nil {
			return err
		}
		if c, ok, err = s.findRegistered(ctx, tx, repo); err != nil {
			return err
		}
		if !ok && len(of) > 0 {
			c, ok = of[0], true
		}
		created = !ok
		if !ok {
			c, err = tx.CreateCodebase(ctx, sessions.Codebase{
				Name: repo.Name, RepositoryURL: repo.URL, DefaultCwd: repo.Dir, Assistant: s.space.Detect(repo),
			})
			if err != nil {
				return err
			}
		}
		if !slices.ContainsFunc(of, func(one sessions.Codebase) bool { return one.ID == c.ID }) {
			of = append(of, c)
		}
		for _, one := range of {
			old, err := tx.CodebaseCommands(ctx, one.ID)
			if err == nil {
				err = tx.UpdateCodebaseCommands(ctx, one.ID, refreshed(old, commands))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return c, false, nil, fmt.Errorf("register the repository: %w", err)
	}
	return c, created, problems, nil
}

func (s *Shop) findRegistered(ctx context.Context, tx orchestrator.Tx, repo codebase.Repo) (sessions.Codebase, bool, error) {
	if repo.URL != "" {
		return tx.FindCodebase(ctx, repo.URL)
	}
	all, err := tx.Codebases(ctx)
	if err != nil {
		return sessions.Codebase{}, false, err
	}
	for _, c := range all {
		if c.RepositoryURL == "" && c.DefaultCwd == repo.Dir {
			return c, true, nil
		}
	}
	return sessions.Codebase{}, false, nil
}

// use makes a conversation work on a codebase and folder. The active session
// ends: what it knew was about something else. It returns what to say of that.
func (s *Shop) use(ctx context.Context, r command.Request, codebaseID, cwd string) (string, error) {
	ended := ""
	err := s.storage.InTx(ctx, func(tx orchestrator.Tx) error {
		ended = ""
		conv, _, err := tx.GetOrCreateConversation(ctx, r.Conv.Key, r.Conv.Assistant) // locks it
		if err != nil {
			return err
		}
		if conv.CodebaseID == codebaseID && conv.Cwd == cwd {
			return nil
		}
		head, ok, err := tx.NextEntry(ctx, conv.ID)
		if err != nil {
			return err
		}
		if ok && head.State == sessions.EntryRunning && head.ID != r.Entry.ID {
			return fault.New(fault.Conflict, "A turn works here, or waits for a decision. Send `/stop`, or wait for it, and then switch.")
		}
		if err := tx.UpdateConversation(ctx, conv.ID, sessions.ConversationUpdate{CodebaseID: &codebaseID, Cwd: &cwd}); err != nil {
			return err
		}
		active, ok, err := tx.ActiveSession(ctx, conv.ID)
		if err != nil || !ok {
			return err
		}
		ended = " The session was ended; your next message starts a fresh one."
		if err := tx.DeactivateSession(ctx, active.ID, "codebase"); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{
			Actor: r.Actor(), Action: "conversation.codebase", ConversationID: conv.ID, Target: codebaseID, Detail: strconv.Quote(cwd),
		})
	})
	if err != nil {
		return "", fmt.Errorf("switch the repository: %w", err)
	}
	s.showMenu(ctx, r.Conv, codebaseID)
	return ended, nil
}

// maxMenu is how many commands of a repository a platform's menu gets; people
// have to find the others with /commands.
const maxMenu = 50

// showMenu puts the commands of a repository into the chat's menu, best effort.
func (s *Shop) showMenu(ctx context.Context, conv sessions.Conversation, codebaseID string) {
	menu, ok := s.adapters[conv.Key.Platform].(platform.ChatMenu)
	if !ok {
		return
	}
	all, err := s.registry(ctx, codebaseID)
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
		s.log.InfoContext(ctx, "Could not show a repository's commands in the menu", "conversation", conv.Key, "err", err)
	}
}

func (s *Shop) runRepos(ctx context.Context, r command.Request) (command.Reply, error) {
	var all []sessions.Codebase
	err := s.storage.InRead(ctx, func(tx orchestrator.Tx) error {
		var err error
		all, err = tx.Codebases(ctx)
		return err
	})
	if err != nil {
		return command.Reply{}, err
	}
	if len(all) == 0 {
		return command.Reply{Text: "There are no repositories yet. `/clone owner/repo` gets one."}, nil
	}
	var b strings.Builder
	for i, c := range all {
		mark := ""
		if c.ID == r.Conv.CodebaseID {
			mark = " ← here"
		}
		fmt.Fprintf(&b, "%d. **%s**%s\n", i+1, c.Name, mark)
	}
	b.WriteString("\n`/repo <name|number>` works on another one.")
	return command.Reply{Text: b.String()}, nil
}

func (s *Shop) runRepo(ctx context.Context, r command.Request) (command.Reply, error) {
	if len(r.Call.Args) == 0 {
		return s.runRepos(ctx, r)
	}
	var all []sessions.Codebase
	err := s.storage.InRead(ctx, func(tx orchestrator.Tx) error {
		var err error
		all, err = tx.Codebases(ctx)
		return err
	})
	if err != nil {
		return command.Reply{}, err
	}
	c, err := Choose(all, strings.Join(r.Call.Args, " "))
	if err != nil {
		return command.Reply{}, err
	}
	ended, err := s.use(ctx, r, c.ID, "")
	if err != nil {
		return command.Reply{}, err
	}
	return command.Reply{Text: fmt.Sprintf("This conversation works on **%s**.%s", c.Name, ended)}, nil
}

// Choose returns the codebase that a person means: by number in the list, by
// exact name, else by the beginning of the name or of its part after the slash.
// "2fa" is a name and not number 2. An ambiguous name lists the candidates.
func Choose(all []sessions.Codebase, what string) (sessions.Codebase, error) {
	if n, err := strconv.Atoi(what); err == nil && strconv.Itoa(n) == what {
		if n < 1 || n > len(all) {
			return sessions.Codebase{}, fault.Newf(fault.NotFound, "There is no number %d; `/repos` lists %s.", n, plural(len(all), "repository"))
		}
		return all[n-1], nil
	}
	var found []sessions.Codebase
	for _, c := range all {
		if strings.EqualFold(c.Name, what) {
			return c, nil
		}
		short := c.Name[strings.LastIndexByte(c.Name, '/')+1:]
		if hasPrefixFold(c.Name, what) || hasPrefixFold(short, what) {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return sessions.Codebase{}, fault.Newf(fault.NotFound, "There is no repository %q; `/repos` lists what is there.", what)
	}
	names := make([]string, 0, len(found))
	for _, c := range found {
		names = append(names, c.Name)
	}
	return sessions.Codebase{}, fault.Newf(fault.Invalid, "%q can be %s. Say which.", what, strings.Join(names, ", "))
}

func hasPrefixFold(s, prefix string) bool {
	return prefix != "" && len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func (s *Shop) runGetCwd(ctx context.Context, r command.Request) (command.Reply, error) {
	c, err := s.codebaseOf(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	return command.Reply{Text: fmt.Sprintf("**%s**, folder `%s`", c.Name, shownCwd(r.Conv.Cwd))}, nil
}

func shownCwd(cwd string) string {
	if cwd == "" {
		return "."
	}
	return cwd
}

func (s *Shop) runSetCwd(ctx context.Context, r command.Request) (command.Reply, error) {
	c, err := s.codebaseOf(ctx, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	if len(r.Call.Args) != 1 {
		return command.Reply{}, fault.New(fault.Invalid, "Give a folder of the repository: `/setcwd src/server`, or `/setcwd .` for its root.")
	}
	tree, err := s.tree(ctx, c, r.Conv)
	if err != nil {
		return command.Reply{}, err
	}
	rel, err := folderIn(tree.Dir, r.Call.Args[0])
	if err != nil {
		return command.Reply{}, err
	}
	ended, err := s.use(ctx, r, c.ID, rel)
	if err != nil {
		return command.Reply{}, err
	}
	return command.Reply{Text: fmt.Sprintf("Working in `%s` of **%s**.%s", shownCwd(rel), c.Name, ended)}, nil
}

// codebaseOf returns the codebase of a conversation, or says how to get one.
func (s *Shop) codebaseOf(ctx context.Context, conv sessions.Conversation) (c sessions.Codebase, err error) {
	if conv.CodebaseID == "" {
		return c, errNoCodebase
	}
	err = s.storage.InRead(ctx, func(tx orchestrator.Tx) error {
		var err error
		c, err = tx.Codebase(ctx, conv.CodebaseID)
		return err
	})
	if err != nil {
		return c, fmt.Errorf("read the codebase: %w", err)
	}
	return c, nil
}

// repoOf returns the repository of a codebase as the workspace knows it.
func (s *Shop) repoOf(ctx context.Context, c sessions.Codebase) (codebase.Repo, error) {
	if err := s.absent(c); err != nil {
		if need, ok := errors.AsType[*orchestrator.NeedsClone](err); ok {
			err = fault.Newf(fault.NotFound, "%s `/clone %s` gets it.", need.Why, need.URL)
		}
		return codebase.Repo{}, err
	}
	repo, err := s.space.Open(ctx, c.DefaultCwd)
	if err != nil {
		return repo, fmt.Errorf("open the repository: %w", err)
	}
	return repo, nil
}

// tree returns the worktree of a conversation, made on first need.
func (s *Shop) tree(ctx context.Context, c sessions.Codebase, conv sessions.Conversation) (codebase.Tree, error) {
	repo, err := s.repoOf(ctx, c)
	if err != nil {
		return codebase.Tree{}, err
	}
	t, err := s.space.Worktree(ctx, repo, conv.WorkID())
	if err != nil {
		return t, fmt.Errorf("prepare the worktree: %w", err)
	}
	return t, nil
}

// folderIn checks a folder that a person named and returns it relative to the
// tree; the root is empty.
func folderIn(dir, name string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fault.Wrap(err, fault.NotFound, "open the worktree")
	}
	defer root.Close() //nolint:errcheck // only read
	rel, err := confine.Dir(root, name)
	if rel == "." {
		rel = ""
	}
	return rel, err
}

// progressText says how far a clone is.
func progressText(p codebase.Progress) string {
	if p.Percent < 0 {
		return "◐ " + p.Stage
	}
	return fmt.Sprintf("◐ %s: %d %%", p.Stage, p.Percent)
}

// openCwd opens the folder that a conversation works in. Everything below is
// reached through it, so that nothing outside can be.
func openCwd(tree codebase.Tree, cwd string) (*os.Root, error) {
	root, err := os.OpenRoot(tree.Dir)
	if err != nil {
		return nil, fault.Wrap(err, fault.NotFound, "open the worktree")
	}
	if cwd == "" {
		return root, nil
	}
	sub, err := root.OpenRoot(filepath.FromSlash(cwd))
	if err != nil {
		err = &fault.Error{Kind: fault.NotFound, Err: err, Public: fmt.Sprintf("The folder %q is not there any more. `/setcwd .` goes back to the root.", cwd)}
	}
	return sub, errors.Join(err, root.Close())
}

func plural(n int, one string) string {
	many := one + "s"
	if stem, ok := strings.CutSuffix(one, "y"); ok {
		many = stem + "ies"
	}
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func withProblems(text string, problems []string) string {
	for _, p := range problems {
		text += "\n\n⚠ " + p
	}
	return text
}
