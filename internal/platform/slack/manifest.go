package slack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// eventScopes are the events that the code reads, with the scope that each needs.
var eventScopes = map[string]string{
	"agent_session_stopped": "assistant:write",
	"app_mention":           "app_mentions:read",
	"app_uninstalled":       "",
	"message.channels":      "channels:history",
	"message.groups":        "groups:history",
	"message.im":            "im:history",
	"message.mpim":          "mpim:history",
	"tokens_revoked":        "",
}

// Scopes returns the scopes that the bot's token needs, sorted: those of the
// calls that are made, of the events that are read, and of the slash command.
func Scopes() []string {
	all := map[string]bool{"commands": true}
	for _, scopes := range methods {
		for _, s := range scopes {
			all[s] = true
		}
	}
	for _, s := range eventScopes {
		if s != "" {
			all[s] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Events returns the events that the app subscribes to, sorted.
func Events() []string { return slices.Sorted(maps.Keys(eventScopes)) }

// AppManifest describes the app to Slack, so that nobody has to click it
// together.
type AppManifest struct {
	json []byte
}

// The sections of a manifest, with what is used of them. What is false is
// written, too: Slack makes the messages tab read-only if nothing is said.
type (
	manifest struct {
		Metadata manifestVersion  `json:"_metadata"`
		Display  manifestDisplay  `json:"display_information"`
		Features manifestFeatures `json:"features"`
		OAuth    manifestOAuth    `json:"oauth_config"`
		Settings manifestSettings `json:"settings"`
	}
	manifestVersion struct {
		Major int `json:"major_version"`
		Minor int `json:"minor_version"`
	}
	manifestDisplay struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Background  string `json:"background_color"`
	}
	manifestFeatures struct {
		Home     manifestHome      `json:"app_home"`
		Bot      manifestBot       `json:"bot_user"`
		Agent    manifestAgent     `json:"agent_view"`
		Commands []manifestCommand `json:"slash_commands"`
	}
	manifestHome struct {
		Home     bool `json:"home_tab_enabled"`
		Messages bool `json:"messages_tab_enabled"`
		ReadOnly bool `json:"messages_tab_read_only_enabled"`
	}
	manifestBot struct {
		Name   string `json:"display_name"`
		Online bool   `json:"always_online"`
	}
	manifestAgent struct {
		Description string `json:"agent_description"`
	}
	manifestCommand struct {
		Command     string `json:"command"`
		URL         string `json:"url,omitempty"`
		Description string `json:"description"`
		Usage       string `json:"usage_hint"`
		Escape      bool   `json:"should_escape"`
	}
	manifestOAuth struct {
		Scopes struct {
			Bot []string `json:"bot"`
		} `json:"scopes"`
	}
	manifestSettings struct {
		Events struct {
			URL string   `json:"request_url,omitempty"`
			Bot []string `json:"bot_events"`
		} `json:"event_subscriptions"`
		Interactivity struct {
			Enabled bool   `json:"is_enabled"`
			URL     string `json:"request_url,omitempty"`
		} `json:"interactivity"`
		OrgDeploy     bool `json:"org_deploy_enabled"`
		SocketMode    bool `json:"socket_mode_enabled"`
		TokenRotation bool `json:"token_rotation_enabled"`
	}
)

// Manifest returns the manifest of the app. Without socket, Slack delivers to
// baseURL, the address under which it reaches this program.
func Manifest(baseURL string, socket bool) AppManifest {
	m := manifest{
		Metadata: manifestVersion{Major: 2, Minor: 1},
		Display:  manifestDisplay{Name: "Agent", Description: "Self-hosted AI coding agent", Background: "#1f2937"},
		Features: manifestFeatures{
			Home:  manifestHome{Messages: true},
			Bot:   manifestBot{Name: "agent", Online: true},
			Agent: manifestAgent{Description: "Ask about your code, or plan a change and have it made."},
			Commands: []manifestCommand{{
				Command: "/agent", Description: "Ask or command the coding agent",
				Usage: "[question] | plan <goal> | status | stop | help", Escape: true,
			}},
		},
	}
	m.OAuth.Scopes.Bot = Scopes()
	m.Settings.Events.Bot = Events()
	m.Settings.Interactivity.Enabled = true
	m.Settings.SocketMode = socket
	if base := strings.TrimRight(baseURL, "/"); !socket {
		m.Settings.Events.URL = base + pathEvents
		m.Settings.Interactivity.URL = base + pathInteractions
		m.Features.Commands[0].URL = base + pathCommands
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(m) // it has only types that JSON has
	return AppManifest{json: bytes.TrimSpace(b.Bytes())}
}

// JSON returns the manifest as JSON.
func (m AppManifest) JSON() string { return string(m.json) }

// URL returns the address that opens Slack's page for a new app with the
// manifest filled in.
func (m AppManifest) URL() string {
	return "https://api.slack.com/apps?new_app=1&manifest_json=" + url.QueryEscape(string(m.json))
}

// YAML returns the manifest as YAML. Strings are quoted as in JSON, which YAML
// includes.
func (m AppManifest) YAML() string {
	dec := json.NewDecoder(bytes.NewReader(m.json))
	dec.UseNumber()
	var b strings.Builder
	writeYAML(&b, dec, 0)
	return b.String()
}

// writeYAML writes the next JSON value, behind what stands on the line already
// unless depth is zero. An object in a list begins on the next line, which YAML
// allows behind the dash.
func writeYAML(b *strings.Builder, dec *json.Decoder, depth int) {
	t, err := dec.Token()
	if err != nil {
		return
	}
	d, nested := t.(json.Delim)
	if !nested {
		raw, _ := json.Marshal(t) //nolint:errchkjson // a scalar that was JSON before
		b.WriteString(" " + strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(raw)) + "\n")
		return
	}
	if depth > 0 {
		b.WriteByte('\n')
	}
	for dec.More() {
		b.WriteString(strings.Repeat("  ", depth))
		if d == '[' {
			b.WriteByte('-')
		} else {
			key, _ := dec.Token()
			fmt.Fprintf(b, "%s:", key)
		}
		writeYAML(b, dec, depth+1)
	}
	_, _ = dec.Token() // the closing bracket
}
