package slack

import (
	"context"
	"strings"

	"remote-agent/internal/doctor"
)

// Examine implements platform.Examiner.
func (a *Adapter) Examine(ctx context.Context) []doctor.Finding {
	return []doctor.Finding{a.examineScopes(), a.examineIntake(ctx)}
}

func (a *Adapter) examineScopes() doctor.Finding {
	missing := a.MissingScopes()
	switch {
	case a.scopes.Load() == nil:
		return doctor.Found("scopes", doctor.Skip, "Slack did not say which scopes the token has", "")
	case len(missing) > 0:
		return doctor.Found("scopes", doctor.Fail, "the app lacks "+strings.Join(missing, ", "),
			"add them under OAuth & Permissions at https://api.slack.com/apps and install the app again")
	}
	return doctor.Found("scopes", doctor.OK, "the app has every scope that the bot uses", "")
}

// examineIntake asks for the address of a socket, which is not opened: Slack would
// send events to it.
func (a *Adapter) examineIntake(ctx context.Context) doctor.Finding {
	if a.cfg.AppToken == "" {
		return doctor.Found("events", doctor.Skip, "events come over HTTP; only Slack can prove that SLACK_SIGNING_SECRET is right", "")
	}
	_, err := a.call(ctx, request{method: "apps.connections.open", idempotent: true, app: true}, func(ctx context.Context) error {
		_, _, err := a.web.StartSocketModeContext(ctx)
		return err
	})
	if err != nil {
		return doctor.Failed("socket", err, "make an app-level token with connections:write at https://api.slack.com/apps and set SLACK_APP_TOKEN")
	}
	return doctor.Found("socket", doctor.OK, "Slack gives out a socket for SLACK_APP_TOKEN", "")
}
