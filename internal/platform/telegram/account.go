package telegram

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"remote-agent/internal/doctor"
	"remote-agent/internal/fault"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/exchange"
)

type identity struct {
	id       int64
	username string
}

// account is the bot's account.
type account struct {
	client *client
	id     string // the bot's user id
	botID  int64
	hook   string // where Telegram delivers to; empty where the bot polls
	log    *slog.Logger

	// self is who getMe says that we are, once known.
	self *platform.Self[identity]
}

// introduce asks who we are until Telegram answers. It returns an error only
// for refused credentials.
func (a *account) introduce(ctx context.Context) error {
	return exchange.UntilDone(ctx, a.log, "telegram is not responding", func(ctx context.Context) error {
		_, err := a.whoami(ctx)
		return err
	}, fault.Unauthorized)
}

// whoami returns the account, asking Telegram the first time.
func (a *account) whoami(ctx context.Context) (identity, error) { return a.self.Get(ctx, a.askSelf) }

func (a *account) askSelf(ctx context.Context) (identity, error) {
	user, err := a.getMe(ctx)
	if err != nil {
		return identity{}, err
	}
	me := identity{id: a.botID, username: user.Username}
	a.self.Store(&me)
	return me, nil
}

func (a *account) getMe(ctx context.Context) (user *models.User, err error) {
	err = a.client.call(ctx, "getMe", true, func(ctx context.Context, api *bot.Bot) (err error) {
		user, err = api.GetMe(ctx)
		return err
	})
	return user, err
}

// refused reports whether Telegram refuses the token itself.
func (a *account) refused(ctx context.Context) bool {
	_, err := a.getMe(ctx)
	return fault.Is(err, fault.Unauthorized)
}

// Check implements platform.Checker.
func (a *account) Check(ctx context.Context) (platform.Account, error) {
	me, err := a.askSelf(ctx)
	if err != nil {
		return platform.Account{}, err
	}
	return platform.Account{ID: a.id, Name: "@" + me.username}, nil
}

// recently is how long a failed delivery is worth telling.
const recently = time.Hour

const tokenFix = "get a new token from @BotFather and set TELEGRAM_BOT_TOKEN" //nolint:gosec // a hint, no token

// Examine implements platform.Examiner.
func (a *account) Examine(ctx context.Context) []doctor.Finding {
	return []doctor.Finding{a.examinePrivacy(ctx), a.examineWebhook(ctx), a.examineCommands(ctx)}
}

// examineCommands looks for the menu of commands that private chats have.
func (a *account) examineCommands(ctx context.Context) doctor.Finding {
	list, err := ask(ctx, a.client, "getMyCommands", (*bot.Bot).GetMyCommands, &bot.GetMyCommandsParams{Scope: &models.BotCommandScopeAllPrivateChats{}})
	switch {
	case err != nil:
		return doctor.Unanswered("commands", err, tokenFix)
	case len(list) == 0:
		return doctor.Found("commands", doctor.Skip, "the menu of commands is not set yet; the bot sets it when it starts", "")
	}
	return doctor.Found("commands", doctor.OK, fmt.Sprintf("the menu of private chats has %d", len(list)), "")
}

func (a *account) examinePrivacy(ctx context.Context) doctor.Finding {
	user, err := a.getMe(ctx)
	switch {
	case err != nil:
		return doctor.Unanswered("privacy", err, tokenFix)
	case user.CanReadAllGroupMessages:
		return doctor.Found("privacy", doctor.Warn, "privacy mode is off: Telegram sends the bot everything written in its groups",
			"send /setprivacy to @BotFather and choose Enable")
	}
	return doctor.Found("privacy", doctor.OK, "privacy mode is on: in groups the bot sees commands, mentions and replies only", "")
}

func (a *account) webhookInfo(ctx context.Context) (info *models.WebhookInfo, err error) {
	err = a.client.call(ctx, "getWebhookInfo", true, func(ctx context.Context, api *bot.Bot) (err error) {
		info, err = api.GetWebhookInfo(ctx)
		return err
	})
	return info, err
}

// deliversHere reports whether Telegram's webhook is the bot's. Telegram writes the host in
// lower case.
func (a *account) deliversHere(info *models.WebhookInfo) bool {
	return strings.EqualFold(info.URL, a.hook)
}

func (a *account) examineWebhook(ctx context.Context) doctor.Finding {
	info, err := a.webhookInfo(ctx)
	if err != nil {
		return doctor.Unanswered("webhook", err, tokenFix)
	}
	host := func(address string) string {
		u, err := url.Parse(address)
		if err != nil {
			return "another address"
		}
		return cmp.Or(u.Host, "another address")
	}
	switch {
	case a.hook == "" && info.URL == "":
		return doctor.Found("webhook", doctor.OK, "polling, and no webhook is in the way", "")
	case a.hook == "":
		return doctor.Found("webhook", doctor.Fail, "another program set a webhook at "+host(info.URL)+", so polling gets nothing",
			"stop that program; the bot removes the webhook when it starts")
	case info.URL == "":
		return doctor.Found("webhook", doctor.Warn, "no webhook is set yet; the bot sets it when it starts", "bot serve")
	case !a.deliversHere(info):
		return doctor.Found("webhook", doctor.Fail, "Telegram sends to "+host(info.URL)+" and not to PUBLIC_URL", "restart the bot with the right PUBLIC_URL")
	case info.LastErrorMessage != "" && time.Since(time.Unix(int64(info.LastErrorDate), 0)) < recently:
		return doctor.Found("webhook", doctor.Warn, "Telegram's last delivery failed: "+info.LastErrorMessage,
			"have "+host(info.URL)+webhookPath+" reach the bot")
	}
	return doctor.Found("webhook", doctor.OK, "Telegram delivers to PUBLIC_URL", "")
}
