package slack

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/slack-go/slack"
	"go.yaml.in/yaml/v3"
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
	for _, m := range methods {
		for s := range strings.FieldsSeq(m[1]) {
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

// AppManifest describes the app to Slack, in JSON, so that nobody has to click it
// together.
type AppManifest []byte

// manifest is the library's, which leaves out what is false: Slack makes the
// messages tab read-only if nothing is said.
type manifest struct {
	slack.Manifest
	Features features `json:"features"`
}

type features struct {
	slack.Features
	Home struct {
		Messages bool `json:"messages_tab_enabled"`
		ReadOnly bool `json:"messages_tab_read_only_enabled"`
	} `json:"app_home"`
}

// Manifest returns the manifest of the app. Without socket, Slack delivers to
// baseURL, the address under which it reaches this program.
func Manifest(baseURL string, socket bool) AppManifest {
	command := slack.ManifestSlashCommand{
		Command: "/agent", Description: "Ask or command the coding agent",
		UsageHint: "[question] | plan <goal> | status | help", ShouldEscape: true,
	}
	events, buttons := &slack.EventSubscriptions{BotEvents: Events()}, &slack.Interactivity{IsEnabled: true}
	if base := strings.TrimRight(baseURL, "/"); !socket {
		events.RequestUrl = base + pathEvents
		buttons.RequestUrl = base + pathInteractions
		command.Url = base + pathCommands
	}
	m := manifest{Manifest: slack.Manifest{
		Metadata:    slack.ManifestMetadata{MajorVersion: 2, MinorVersion: 1},
		Display:     slack.Display{Name: "Agent", Description: "Self-hosted AI coding agent", BackgroundColor: "#1f2937"},
		OAuthConfig: slack.OAuthConfig{Scopes: slack.OAuthScopes{Bot: Scopes()}},
		Settings:    slack.Settings{EventSubscriptions: events, Interactivity: buttons, SocketModeEnabled: socket},
	}}
	m.Features.BotUser = slack.BotUser{DisplayName: "agent", AlwaysOnline: true}
	m.Features.AgentView = &slack.AgentView{AgentDescription: "Ask about your code, or plan a change and have it made."}
	m.Features.SlashCommands = []slack.ManifestSlashCommand{command}
	m.Features.Home.Messages = true
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(m) // it has only types that JSON has
	return bytes.TrimSpace(b.Bytes())
}

// JSON returns the manifest as JSON.
func (m AppManifest) JSON() string { return string(m) }

// URL returns the address that opens Slack's page for a new app with the
// manifest filled in.
func (m AppManifest) URL() string {
	return "https://api.slack.com/apps?new_app=1&manifest_json=" + url.QueryEscape(string(m))
}

// YAML returns the manifest as YAML.
func (m AppManifest) YAML() string {
	var doc yaml.Node
	if yaml.Unmarshal(m, &doc) != nil { // YAML includes JSON
		return string(m)
	}
	inBlocks(&doc)
	out, err := yaml.Marshal(&doc)
	if err != nil {
		return string(m)
	}
	return string(out)
}

// inBlocks takes the brackets of JSON away, and the quotes that YAML does not need.
func inBlocks(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		inBlocks(c)
	}
}
