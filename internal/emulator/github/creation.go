package github

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"remote-agent/internal/emulator/platformapi"
)

// creationLife is how long the code of a new app is good.
const creationLife = time.Hour

// creation is an app that a person has agreed to, and that nobody has fetched yet.
type creation struct {
	manifest Manifest
	owner    string
	at       time.Time
}

// Manifest is what an app is made from (docs.github.com, "Registering a GitHub App from
// a manifest").
type Manifest struct {
	Name        string            `json:"name"`
	URL         string            `json:"url"`
	Redirect    string            `json:"redirect_url"`
	Public      bool              `json:"public"`
	Permissions map[string]string `json:"default_permissions"`
	Events      []string          `json:"default_events"`
	Hook        struct {
		URL    string `json:"url"`
		Active *bool  `json:"active"`
	} `json:"hook_attributes"`
}

// creations make the App anew, from a manifest.
type creations struct {
	hooks  *webhooks
	tokens *credentials

	agreed map[string]*creation // by code; the world's lock guards it
}

// serve serves the two ends of making an app: the page that a browser posts the
// manifest to, where the person agrees at once, and the exchange of the code that the
// browser is sent back with.
func (c *creations) serve(w http.ResponseWriter, r *http.Request) bool {
	path := strings.TrimPrefix(r.URL.Path, "/api/v3")
	if code, ok := strings.CutPrefix(path, "/app-manifests/"); ok && r.Method == http.MethodPost {
		c.convert(w, strings.TrimSuffix(code, "/conversions"))
		return true
	}
	world := c.hooks.world
	owner := world.opts.App.Owner
	if rest, ok := strings.CutPrefix(path, "/organizations/"); ok {
		owner, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	if path != "/settings/apps/new" || r.Method != http.MethodPost {
		return false
	}
	var m Manifest
	back, err := url.Parse("")
	if json.Unmarshal([]byte(r.PostFormValue("manifest")), &m) == nil {
		back, err = url.Parse(m.Redirect)
	}
	if err != nil || back.Host == "" || m.URL == "" || len(m.Name) > 34 {
		http.Error(w, "Invalid GitHub App configuration", http.StatusUnprocessableEntity)
		return true
	}
	code := letters(40)
	done := world.writing()
	c.agreed[code] = &creation{manifest: m, owner: owner, at: world.now()}
	done()
	query := back.Query()
	query.Set("code", code)
	if state := r.URL.Query().Get("state"); state != "" {
		query.Set("state", state)
	}
	back.RawQuery = query.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound) //nolint:gosec // that is what the protocol is
	return true
}

// convert hands the app out, once. It is the App of this server from then on, by the name
// that it was given.
func (c *creations) convert(w http.ResponseWriter, code string) {
	world, show := c.hooks.world, c.hooks.show
	defer world.writing()()
	answer := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write(platformapi.MustJSON(body))
	}
	made := c.agreed[code]
	if made == nil || world.now().Sub(made.at) > creationLife {
		answer(http.StatusNotFound, obj{"message": "Not Found", "documentation_url": "https://docs.github.com/rest/apps/apps#create-a-github-app-from-a-manifest", "status": "404"})
		return
	}
	delete(c.agreed, code)
	secret := any(nil)
	if made.manifest.Hook.URL != "" {
		text := letters(40)
		secret = text
		c.hooks.app.set(Hook{URL: made.manifest.Hook.URL, Secret: text})
	}
	world.opts.App.Permissions = maps.Clone(made.manifest.Permissions)
	app := show.app()
	maps.Copy(app, obj{
		"owner": show.user(world.know(made.owner)), "client_secret": letters(40), "webhook_secret": secret, "pem": string(c.tokens.PrivateKey()),
	})
	answer(http.StatusCreated, app)
}
