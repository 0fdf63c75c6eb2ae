package github

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/doctor"
)

const appFix = "check GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY"

// Examine implements platform.Examiner.
func (a *account) Examine(ctx context.Context) []doctor.Finding {
	findings := []doctor.Finding{a.examinePermissions()}
	if a.client.appID == "" {
		return findings
	}
	findings = append(findings, a.examineInstallations(ctx))
	if !a.poll {
		findings = append(findings, a.examineDeliveries(ctx))
	}
	return findings
}

func (a *account) examinePermissions() doctor.Finding {
	missing, excess := a.missingPermissions(), a.excess()
	me := a.self.Load()
	switch {
	case len(missing) > 0:
		return doctor.Found("permissions", doctor.Fail, "GitHub has not granted "+strings.Join(missing, ", "),
			"change the App's permissions and events, or the token's scopes, at https://github.com/settings, and accept them in each installation")
	case len(excess) > 0:
		return doctor.Found("permissions", doctor.Warn, "the App has permissions that the bot never uses: "+strings.Join(excess, ", "),
			"remove them in the App's settings at https://github.com/settings/apps")
	case a.client.appID == "" && (me == nil || len(me.scopes) == 0):
		return doctor.Found("permissions", doctor.Skip, "GitHub does not say what a fine-grained token may do", "")
	}
	return doctor.Found("permissions", doctor.OK, "GitHub has granted what the bot uses", "")
}

func (a *account) examineInstallations(ctx context.Context) doctor.Finding {
	all, err := a.client.installations(ctx)
	switch {
	case err != nil:
		return doctor.Unanswered("installations", err, appFix)
	case len(all) == 0:
		return doctor.Found("installations", doctor.Fail, "the App is installed nowhere", "install it: Install App, on the App's page at https://github.com/settings/apps")
	}
	status, fix := doctor.OK, ""
	var names, behind []string
	for _, i := range all {
		name := i.GetAccount().GetLogin()
		if i.SuspendedAt != nil {
			name += " (suspended)"
			status, fix = doctor.Fail, "unsuspend it at https://github.com/settings/installations"
		}
		names = append(names, name)
		if missing := lacking(granted(i.GetPermissions())); len(missing) > 0 {
			behind = append(behind, name+" ("+strings.Join(missing, ", ")+")")
		}
	}
	if len(behind) > 0 {
		return doctor.Found("installations", doctor.Fail, "permissions that were not accepted yet: "+strings.Join(behind, "; "),
			"accept them: Review request, on the installation's page at https://github.com/settings/installations")
	}
	return doctor.Found("installations", status, "installed for "+strings.Join(names, ", "), fix)
}

// examineDeliveries looks at the last webhooks that GitHub sent.
func (a *account) examineDeliveries(ctx context.Context) doctor.Finding {
	last, _, err := call(ctx, a.client, asApp, op{name: "listing deliveries"}, func(g api) ([]*github.HookDelivery, *github.Response, error) {
		return g.Apps.ListHookDeliveries(g.ctx, &github.ListCursorOptions{PerPage: 30})
	})
	switch {
	case err != nil:
		return doctor.Unanswered("webhook", err, appFix)
	case len(last) == 0:
		return doctor.Found("webhook", doctor.Skip, "GitHub has sent no webhook yet", "")
	}
	arrived := make(map[string]bool) // by the id that attempts share: what failed is sent again
	for _, d := range last {
		arrived[d.GetGUID()] = arrived[d.GetGUID()] || took(d)
	}
	failed := 0
	for _, ok := range arrived {
		if !ok {
			failed++
		}
	}
	if !took(last[0]) {
		return doctor.Found("webhook", doctor.Fail, fmt.Sprintf("the last webhook was answered with %s", last[0].GetStatus()),
			"check PUBLIC_URL and GITHUB_WEBHOOK_SECRET, then redeliver under Advanced on the App's page at https://github.com/settings/apps")
	}
	if failed > 0 {
		return doctor.Found("webhook", doctor.Warn, fmt.Sprintf("%d of the last %d webhooks never arrived; the last one did", failed, len(arrived)),
			"redeliver them under Advanced on the App's page at https://github.com/settings/apps")
	}
	return doctor.Found("webhook", doctor.OK, fmt.Sprintf("the last %d webhooks arrived", len(arrived)), "")
}
