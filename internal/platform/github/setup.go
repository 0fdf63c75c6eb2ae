package github

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
	"remote-agent/internal/platform/exchange"
	"remote-agent/internal/setup"
)

// SetUp implements platform.Guided.
func (k *kind) SetUp(publicURL string) setup.Step {
	hooked := strings.HasPrefix(publicURL, "https://")
	mode, arrives := modePoll, "The bot polls GitHub every "+cmp.Or(k.pollEvery, 45*time.Second).String()+"."
	if hooked {
		mode, arrives = modeWebhook, "GitHub delivers to "+publicURL+"."
	}
	proof := setup.Proof{Areas: []string{string(Name)}, Later: []string{"installations", "webhook"}}
	const opens = "People with write access can mention the bot in issues, pull requests and reviews. "
	return setup.Step{Name: "github", Title: "GitHub", Ways: []setup.Way{{
		Name: "app", Title: "your own app, made by GitHub in two clicks; there is nothing to copy",
		Guide: []string{
			"Open the page that is shown below and press its button; GitHub asks for the app's name.",
			"Press Create GitHub App: the browser brings back its id, key and secret by itself.",
			"Install it where it should work: the link follows.",
		},
		Fields: []setup.Field{
			{Name: "organization", Label: "Organization that owns the app; empty for your own account", Optional: true},
			{Name: "name", Label: "Name of the app, by which people mention it", Default: defaultMention},
		},
		Set:   map[string]string{"GITHUB_MODE": mode, "GITHUB_TOKEN": ""},
		Proof: proof,
		Opens: opens + arrives,
		Obtain: &setup.Obtain{
			Form: func(values map[string]string, back, state string) (setup.Form, error) {
				return k.creation(publicURL, hooked, values, back, state)
			},
			Exchange: k.convert,
		},
	}, {
		Name: "key", Title: "an app that you have already",
		Guide: []string{
			"Open https://github.com/settings/apps, or those of your organization, and the app in it.",
			"Its App ID is at the top of General.",
			"Private keys > Generate a private key: a .pem file is downloaded.",
		},
		Fields: []setup.Field{
			{Name: "GITHUB_APP_ID", Label: "App ID"},
			{Name: "GITHUB_APP_PRIVATE_KEY", Label: "Path of the .pem file", Secret: true, File: true},
		},
		Set:   map[string]string{"GITHUB_MODE": modePoll, "GITHUB_TOKEN": ""},
		Proof: proof,
		Opens: opens + "The bot polls GitHub; docs/github.md says how to have GitHub deliver instead.",
	}, {
		Name: "token", Title: "a personal token: the bot writes in your name",
		Guide: []string{
			"Open https://github.com/settings/personal-access-tokens/new and choose the repositories.",
			"Permissions: Contents, Issues and Pull requests read and write, Metadata read.",
			"Generate the token and copy it, github_pat_...",
		},
		Fields: []setup.Field{
			{Name: "GITHUB_TOKEN", Label: "Token", Secret: true},
			{Name: "GITHUB_REPOSITORIES", Label: "Repositories to watch, owner/name with commas"},
		},
		Set:   map[string]string{"GITHUB_MODE": modePoll, "GITHUB_APP_ID": "", "GITHUB_APP_PRIVATE_KEY": "", "GITHUB_WEBHOOK_SECRET": ""},
		Proof: proof,
		Opens: opens + "The bot polls GitHub every " + cmp.Or(k.pollEvery, 45*time.Second).String() + ".",
	}, {
		Name: "off", Title: "turn GitHub off",
		Set:   map[string]string{"GITHUB_MODE": "", "GITHUB_APP_ID": "", "GITHUB_APP_PRIVATE_KEY": "", "GITHUB_WEBHOOK_SECRET": ""},
		Opens: "The bot no longer answers on GitHub.",
	}}}
}

// convertTimeout bounds the exchange of a code.
const convertTimeout = 30 * time.Second

// organizationForm is the login of an organization.
var organizationForm = pattern.Lazy(`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?$`)

// creation is what a browser posts to GitHub to make the app (docs.github.com,
// "Registering a GitHub App from a manifest").
func (k *kind) creation(publicURL string, hooked bool, values map[string]string, back, state string) (setup.Form, error) {
	path := "/settings/apps/new"
	if org := values["organization"]; org != "" {
		if !organizationForm.MatchString(org) {
			return setup.Form{}, fault.Newf(fault.Invalid, "%q is not the login of an organization: it is what comes after github.com/ on its page.", org)
		}
		path = "/organizations/" + org + "/settings/apps/new"
	}
	if !hooked {
		publicURL = ""
	}
	text, err := manifestFor(publicURL, values["name"], back)
	if err != nil {
		return setup.Form{}, err
	}
	return setup.Form{
		Action: k.webBase() + path + "?state=" + url.QueryEscape(state),
		Fields: map[string]string{"manifest": string(text)},
	}, nil
}

// webBase is where people read GitHub, without a trailing slash.
func (k *kind) webBase() string {
	c := Config{APIURL: k.apiURL, WebURL: k.webURL}
	c.defaults()
	return strings.TrimRight(c.WebURL, "/")
}

// convert gets the app that GitHub has made for a code, which is good once and for an
// hour.
func (k *kind) convert(ctx context.Context, query url.Values) (values map[string]string, next string, err error) {
	code := query.Get("code")
	if code == "" {
		return nil, "", fault.New(fault.Invalid, "GitHub sent no code: the app was not made. Press Create GitHub App there.")
	}
	ctx, cancel := context.WithTimeout(ctx, convertTimeout)
	defer cancel()
	c := Config{APIURL: k.apiURL}
	c.defaults()
	client := github.NewClient(exchange.Client(exchange.Transport(1)))
	client.BaseURL, _ = url.Parse(strings.TrimRight(c.APIURL, "/") + "/") // the option was checked
	seen := &exchange.Call{Scrub: exchange.NewScrubber(secretForm.Regexp(), code)}
	made, resp, err := client.Apps.CompleteAppManifest(seen.Context(ctx), code)
	switch {
	case resp != nil && resp.StatusCode == http.StatusNotFound:
		return nil, "", fault.New(fault.Invalid, "GitHub does not know this code: it works once, within an hour. Open the page again.")
	case err != nil:
		return nil, "", seen.Failure(ctx, "apps/create-from-manifest", err)
	case made.GetID() == 0 || made.GetPEM() == "":
		return nil, "", fault.New(fault.Unavailable, "GitHub answered without the app's key. Delete the app on GitHub and open the page again.")
	}
	values = map[string]string{"GITHUB_APP_ID": strconv.FormatInt(made.GetID(), 10), "GITHUB_APP_PRIVATE_KEY": strings.TrimSpace(made.GetPEM())}
	if secret := made.GetWebhookSecret(); secret != "" {
		values["GITHUB_WEBHOOK_SECRET"] = secret
	}
	return values, k.webBase() + "/apps/" + made.GetSlug() + "/installations/new", nil
}
