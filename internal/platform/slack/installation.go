package slack

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/slack-go/slack"

	"remote-agent/internal/doctor"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

// identity is the bot's own account.
type identity struct {
	team       string
	enterprise string // only for an organization-wide installation
	user       string // the bot user's id
	bot        string // the bot's id, as in bot_id of its messages
	name       string
}

func (me identity) account() string { return account(me.enterprise, me.team) }

// installation is what is known of the app where it is installed: who the bot is there,
// and what it may do.
type installation struct {
	api        *api
	socketMode bool
	log        *slog.Logger

	// self is who auth.test says that we are, once known.
	self   *platform.Self[identity]
	scopes atomic.Pointer[[]string]
}

// introduce asks who we are until Slack answers. It returns an error only for
// refused credentials.
func (i *installation) introduce(ctx context.Context) error {
	return exchange.UntilDone(ctx, i.log, "slack does not answer", func(ctx context.Context) error {
		_, err := i.whoami(ctx)
		return err
	}, fault.Unauthorized)
}

// whoami returns the account, asking Slack the first time.
func (i *installation) whoami(ctx context.Context) (identity, error) {
	return i.self.Get(ctx, i.askSelf)
}

func (i *installation) askSelf(ctx context.Context) (identity, error) {
	var install struct {
		OrgWide bool `json:"is_enterprise_install"` // which the library does not tell
	}
	var out *slack.AuthTestResponse
	call, err := i.api.call(ctx, request{method: "auth.test", idempotent: true, more: &install}, func(ctx context.Context, web *slack.Client) (err error) {
		out, err = web.AuthTestContext(ctx)
		return err
	})
	switch {
	case err != nil:
		return identity{}, err
	case out == nil:
		return identity{}, fault.Wrap(errNoAnswer, fault.Unavailable, "auth.test")
	}
	me := identity{team: out.TeamID, user: out.UserID, bot: out.BotID, name: out.User}
	if install.OrgWide {
		me.enterprise = out.EnterpriseID
	}
	if list := call.Answered().Get("X-OAuth-Scopes"); list != "" {
		granted := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
		if known := i.scopes.Swap(&granted); known == nil || !slices.Equal(*known, granted) {
			i.warnScopes(ctx)
		}
	}
	i.self.Store(&me)
	return me, nil
}

// Check implements platform.Checker.
func (i *installation) Check(ctx context.Context) (platform.Account, error) {
	me, err := i.askSelf(ctx)
	if err != nil {
		return platform.Account{}, err
	}
	return platform.Account{ID: me.account(), Name: "@" + me.name}, nil
}

// scopesApart returns, sorted, what the app's manifest asks for and the installation
// has not granted, and what it has granted that the bot never uses. Both are empty
// before Slack was asked, and if Slack did not tell.
func (i *installation) scopesApart() (missing, excess []string) {
	granted := i.scopes.Load()
	if granted == nil {
		return nil, nil
	}
	asked := Scopes()
	missing = slices.DeleteFunc(slices.Clone(asked), func(s string) bool { return slices.Contains(*granted, s) })
	excess = slices.DeleteFunc(slices.Sorted(slices.Values(*granted)), func(s string) bool { return slices.Contains(asked, s) })
	return missing, excess
}

func (i *installation) warnScopes(ctx context.Context) {
	missing, excess := i.scopesApart()
	if len(missing) > 0 {
		i.log.WarnContext(ctx, "the slack app lacks scopes; add them to the app and install it again", "missing", missing)
	}
	if len(excess) > 0 {
		i.log.WarnContext(ctx, "the slack app may do more than the bot needs", "excess", excess)
	}
}

// Examine implements platform.Examiner.
func (i *installation) Examine(ctx context.Context) []doctor.Finding {
	return []doctor.Finding{i.examineScopes(), i.examineIntake(ctx)}
}

func (i *installation) examineScopes() doctor.Finding {
	missing, excess := i.scopesApart()
	switch {
	case i.scopes.Load() == nil:
		return doctor.Found("scopes", doctor.Skip, "Slack did not say which scopes the token has", "")
	case len(missing) > 0:
		return doctor.Found("scopes", doctor.Fail, "the app lacks "+strings.Join(missing, ", "),
			"add them under OAuth & Permissions at https://api.slack.com/apps and install the app again")
	case len(excess) > 0:
		return doctor.Found("scopes", doctor.Warn, "the app has scopes that the bot never uses: "+strings.Join(excess, ", "),
			"remove them under OAuth & Permissions at https://api.slack.com/apps and install the app again")
	}
	return doctor.Found("scopes", doctor.OK, "the app has every scope that the bot uses", "")
}

// examineIntake asks for the address of a socket, which is not opened: Slack would
// send events to it.
func (i *installation) examineIntake(ctx context.Context) doctor.Finding {
	if !i.socketMode {
		return doctor.Found("events", doctor.Skip, "events come over HTTP; only Slack can prove that SLACK_SIGNING_SECRET is right", "")
	}
	_, err := i.api.call(ctx, request{method: "apps.connections.open", idempotent: true, app: true}, func(ctx context.Context, web *slack.Client) error {
		_, _, err := web.StartSocketModeContext(ctx)
		return err
	})
	if err != nil {
		return doctor.Failed("socket", err, "make an app-level token with connections:write at https://api.slack.com/apps and set SLACK_APP_TOKEN")
	}
	return doctor.Found("socket", doctor.OK, "Slack gives out a socket for SLACK_APP_TOKEN", "")
}

// CommandPrefix implements platform.Prefixer. Slack knows no slash commands in threads:
// there the name of a command stands behind a mention of the bot.
func (i *installation) CommandPrefix(key messages.ConversationKey) string {
	to, err := parseKey(key)
	if me := i.self.Load(); err == nil && to.thread != "" && me != nil && me.name != "" {
		return "@" + me.name + " "
	}
	return slashPrefix
}

// slashPrefix stands before a command's name where there are slash commands.
const slashPrefix = "/agent "

func (i *installation) ownAccount() string {
	if me := i.self.Load(); me != nil {
		return me.account()
	}
	return ""
}

// accountOf returns the account that a command or interaction was sent to. Only
// an organization-wide installation has more than one.
func (i *installation) accountOf(team, enterprise string, orgWide bool) string {
	if me := i.self.Load(); me != nil && me.enterprise == "" {
		return me.account()
	}
	if !orgWide {
		enterprise = ""
	}
	return account(enterprise, team)
}

// installedIn reports whether a workspace or its organization is where this adapter's app
// is installed. In a shared channel, and where the app has another installation, what Slack
// sends names the workspace of who acted. Before it is known who we are, every one counts
// as ours.
func (i *installation) installedIn(team, enterprise string) bool {
	me := i.self.Load()
	return me == nil || team != "" && team == me.team || enterprise != "" && enterprise == me.enterprise
}
