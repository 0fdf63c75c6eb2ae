package slack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/slack-go/slack"
)

// events are the events that the code reads, with the scope that each needs.
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

// Manifest returns the manifest of the app. Without socket, Slack delivers to
// baseURL, the address under which it reaches this program.
func Manifest(baseURL string, socket bool) AppManifest {
	m := slack.Manifest{
		Display: slack.Display{
			Name: "Agent", Description: "Self-hosted AI coding agent", BackgroundColor: "#1f2937",
		},
		Features: slack.Features{
			BotUser: slack.BotUser{DisplayName: "agent", AlwaysOnline: true},
			AppHome: slack.AppHome{MessagesTabEnabled: true},
			AgentView: &slack.AgentView{
				AgentDescription: "Ask about your code, or plan a change and have it made.",
			},
			SlashCommands: []slack.ManifestSlashCommand{{
				Command: "/agent", Description: "Ask or command the coding agent",
				UsageHint: "[question] | plan <goal> | status | stop | help", ShouldEscape: true,
			}},
		},
		OAuthConfig: slack.OAuthConfig{Scopes: slack.OAuthScopes{Bot: Scopes()}},
		Settings: slack.Settings{
			EventSubscriptions: &slack.EventSubscriptions{BotEvents: Events()},
			Interactivity:      &slack.Interactivity{IsEnabled: true},
			SocketModeEnabled:  socket,
		},
	}
	if base := strings.TrimRight(baseURL, "/"); !socket {
		m.Settings.EventSubscriptions.RequestUrl = base + pathEvents
		m.Settings.Interactivity.RequestUrl = base + pathInteractions
		m.Features.SlashCommands[0].Url = base + pathCommands
	}
	return AppManifest{json: compact(m)}
}

// compact writes a manifest without the sections that are not used.
func compact(m slack.Manifest) []byte {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil // only for types that JSON does not have
	}
	return raw
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
	writeYAML(&b, dec, 0, false)
	return b.String()
}

// writeYAML writes the next JSON value. Inline is set if something stands before
// it on the line.
func writeYAML(b *strings.Builder, dec *json.Decoder, depth int, inline bool) {
	t, err := dec.Token()
	if err != nil {
		return
	}
	d, nested := t.(json.Delim)
	if !nested {
		raw, _ := json.Marshal(t) //nolint:errchkjson // a scalar that was JSON before
		fmt.Fprintf(b, " %s\n", raw)
		return
	}
	if !dec.More() {
		fmt.Fprintf(b, " %c%c\n", d, d+2) // [] or {}
		_, _ = dec.Token()
		return
	}
	if inline && d == '{' || inline && d == '[' {
		b.WriteByte('\n')
	}
	for dec.More() {
		b.WriteString(strings.Repeat("  ", depth))
		if d == '[' {
			b.WriteByte('-')
			writeItem(b, dec, depth+1)
			continue
		}
		key, _ := dec.Token()
		fmt.Fprintf(b, "%s:", key)
		writeYAML(b, dec, depth+1, true)
	}
	_, _ = dec.Token()
}

// writeItem writes an element of a list. One that is an object begins on the
// next line, which YAML allows behind the dash.
func writeItem(b *strings.Builder, dec *json.Decoder, depth int) { writeYAML(b, dec, depth, true) }
