package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"remote-agent/internal/config"
	"remote-agent/internal/doctor"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/pages"
	"remote-agent/internal/people"
	"remote-agent/internal/platform/console"
	webchat "remote-agent/internal/platform/web"
	"remote-agent/internal/profile"
	"remote-agent/internal/sessions"
	"remote-agent/internal/setup"
	"remote-agent/internal/signin"
	"remote-agent/internal/signin/issuer"
	"remote-agent/internal/spend"
	"remote-agent/internal/store"
	"remote-agent/internal/transcript"
)

// operator is whoever is at the machine.
func operator() signin.Account { return signin.Account{Platform: console.Name, ID: console.Sender} }

// pages returns the handler of the web pages.
func (d *daemon) pages() http.Handler {
	return pages.New(pages.Config{
		Storage: d.store, PublicURL: d.config.PublicURL, Version: d.env.Version, SecondApprover: d.config.Tools.SecondApprover,
		Role: func(ctx context.Context, tx *store.Tx, a signin.Account) (sessions.Role, error) {
			return d.people.Role(ctx, tx, people.Account{Platform: a.Platform, ID: a.ID})
		},
		Command: d.core.Command, Accept: d.core.Accept, Redact: d.redact.String, About: d.about(), Changes: d.changes,
		Talk: func(ctx context.Context, chat, id string, from messages.Sender, text string, files []messages.PostedFile) error {
			return d.platforms.talk.Say(ctx, webchat.Said{Chat: chat, ID: id, From: from, Text: text, Files: files})
		},
		Setup: d.setUp, Identity: identityOf(d.config.SignIn), Log: d.log.With("component", "pages"),
	})
}

// setUp returns what changes the configuration of this process, as its file is now.
func (d *daemon) setUp() (setup.Service, error) {
	if d.env.Source == nil {
		return nil, fault.New(fault.Unsupported, "The configuration cannot be changed here: use bot setup on the server.")
	}
	env := d.env
	env.daemon = d
	return NewSetup(*d.env.Source, env)
}

// identityOf says how people get into the pages besides links.
func identityOf(c config.SignIn) pages.Identity {
	i := pages.Identity{People: make(map[string]signin.Account, len(c.People)), Proxies: c.Proxies, Header: c.Header}
	for name, account := range c.People {
		platform, id, _ := strings.Cut(account, "/")
		i.People[name] = signin.Account{Platform: messages.Platform(platform), ID: messages.UserID(id)}
	}
	if c.Issuer != "" {
		i.Issuer = issuer.New(issuer.Config{URL: c.Issuer, ClientID: c.ClientID, Secret: c.ClientSecret.Reveal(), Claim: c.Claim})
	}
	return i
}

// signInLink makes a link for an account and returns it. local says that it leads to
// this machine only.
func (d *daemon) signInLink(ctx context.Context, a signin.Account) (link string, local bool, err error) {
	base := pagesAt(d.config, d.web.Addr())
	link, err = newSignInLink(ctx, d.store, a, base, time.Now())
	return link, d.config.PublicURL == "", err
}

func newSignInLink(ctx context.Context, s *store.Store, a signin.Account, base string, now time.Time) (string, error) {
	l, token := signin.NewLink(a, now)
	err := s.InTx(ctx, func(tx *store.Tx) error {
		if err := tx.SignIn().SaveSignInLink(ctx, l, now); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: a.String(), Action: "web.link"})
	})
	return pages.Link(base, token), err
}

// pagesAt is where people find the pages: PUBLIC_URL, or this machine by the address
// that is listened on.
func pagesAt(cfg config.Config, addr string) string {
	if cfg.PublicURL != "" {
		return strings.TrimSuffix(cfg.PublicURL, "/")
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "http://" + addr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// OwnerLink prints a link that signs whoever is at the machine in to the pages of the
// daemon as an owner. It works once, for five minutes.
func OwnerLink(ctx context.Context, cfg config.Config, env Env) error {
	if _, port, _ := net.SplitHostPort(cfg.ListenAddr); port == "0" && cfg.PublicURL == "" {
		return fault.Newf(fault.Invalid, "LISTEN_ADDR is %s: only the bot knows the port that it was given. Set a port, or PUBLIC_URL.", cfg.ListenAddr)
	}
	return withStore(ctx, cfg, env, false, func(s *store.Store) error {
		link, err := newSignInLink(ctx, s, operator(), pagesAt(cfg, cfg.ListenAddr), time.Now())
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(env.Stdout, link); err != nil {
			return fault.Wrap(err, fault.Gone, "print the link")
		}
		say(env.Stderr, "The link works once, for 5 minutes.\n")
		return nil
	})
}

// sayPages says how to get into the pages. The start does not depend on it.
func (d *daemon) sayPages(ctx context.Context) {
	base := pagesAt(d.config, d.web.Addr())
	if d.env.Quiet {
		return
	}
	if d.notices.logsOnly() { // a log is read by others, and for long
		d.notices.say("  web       %s  sign in with the link of `bot owner-link`\n", base)
		return
	}
	link, err := newSignInLink(ctx, d.store, operator(), base, time.Now())
	if err != nil {
		d.log.WarnContext(ctx, "could not make a link to the web pages", "err", err)
		return
	}
	d.notices.say("  web       %s\n            signs you in once, within 5 minutes; later: bot owner-link\n", link)
}

// about are the facts of the pages that only the program as a whole knows.
func (d *daemon) about() pages.About {
	return pages.About{
		Platforms:   func() []pages.Light { return d.platforms.lights(d.current()) },
		Connections: func() []pages.Connection { return d.platforms.connections(d.current()) },
		Background:  d.chores.Go, Backups: d.backups(), Settings: func() ([]pages.Setting, []string) { return settingsOf(d.current()) }, Repository: d.repository,
		ParseProfile: func(text []byte) (profile.Profile, error) { return ofFile(d.current(), text) },
		Check: func(ctx context.Context, area string) doctor.Report {
			if area == "" {
				return Doctor(ctx, d.current(), d.env, false)
			}
			return examine(ctx, d.current(), d.env, area)
		},
		Budget: func() spend.Budget { return spend.Budget(d.current().Budget) },
		RemoveChat: func(ctx context.Context, account, id string) error {
			return d.removeForSomebody(ctx, func(tx *store.Tx) error {
				if _, err := tx.Board().RemoveChat(ctx, account, id); err != nil {
					return err
				}
				return tx.Audit(ctx, sessions.AuditEntry{Actor: account, Action: "conversation.remove", Target: "web/" + id})
			})
		},
		RemoveSession: func(ctx context.Context, id, by string) error {
			return d.removeForSomebody(ctx, func(tx *store.Tx) error {
				if _, err := tx.Care().RemoveSession(ctx, id); err != nil {
					return err
				}
				return tx.Audit(ctx, sessions.AuditEntry{Actor: by, Action: "session.remove", Target: id})
			})
		},
		Export: func(ctx context.Context, out io.Writer, id string, all bool) error {
			options := transcript.Options{Redact: d.redact, Whole: all}
			if !all {
				options.For = transcript.Everybody
			}
			return transcript.Write(ctx, d.store, out, id, options)
		},
		People:   directory{d.people},
		Memories: d.memory.forPages(),
		AuditSound: func(ctx context.Context) (string, error) {
			said, err := auditSound(ctx, d.store, d.current().BackupDir)
			return strings.Join(said, "; "), err
		},
		Changes: func(ctx context.Context, conv sessions.Conversation) (pages.Changes, bool, error) {
			if d.work == nil {
				return pages.Changes{}, false, nil
			}
			branch, c, ok, err := d.work.Changes(ctx, conv)
			return pages.Changes{Branch: branch, Stat: c.Stat, Patch: c.Readable(), Files: c.Files, Truncated: c.Truncated, Unsaved: c.Unsaved}, ok, err
		},
		Ring: func(ctx context.Context, conversationID string) { _ = d.core.Ring(ctx, conversationID) }, // the sweep does otherwise
	}
}

// repository says what this process knows of a repository.
func (d *daemon) repository(ctx context.Context, c sessions.Codebase) (r pages.Repository, err error) {
	if d.space == nil {
		return r, fault.New(fault.Unsupported, "There is no git here, so nothing is known of clones and worktrees.")
	}
	branch, trees, err := d.work.Describe(ctx, c)
	r.Branch = branch
	for _, t := range trees {
		r.Worktrees = append(r.Worktrees, pages.Worktree{ConversationID: t.Conversation, Branch: t.Branch, Made: t.Made})
	}
	return r, err
}

// settingsOf returns the options of a configuration.
func settingsOf(cfg config.Config) (list []pages.Setting, warnings []string) {
	for _, e := range cfg.Effective() {
		list = append(list, pages.Setting(e))
	}
	return list, cfg.Warnings
}

// lights say how the platforms stand.
func (pl *platforms) lights(cfg config.Config) (list []pages.Light) {
	for _, k := range kindsOf(cfg) {
		account, answered := pl.account(k.Platform())
		l := pages.Light{Name: string(k.Platform()), On: k.On(), Works: answered, Detail: strings.TrimPrefix(k.Banner(account), "off. ")}
		if k.On() && !answered {
			l.Detail = "on, but it has not answered since the start"
		}
		list = append(list, l)
	}
	return list
}

// removeForSomebody deletes something of what was said, for a person in the browser.
func (d *daemon) removeForSomebody(ctx context.Context, remove func(tx *store.Tx) error) error {
	if err := d.store.InTx(ctx, remove); err != nil {
		return err
	}
	env := d.env
	env.daemon = d
	return finishErasing(ctx, d.current(), env, d.store)
}
