package slack

import "remote-agent/internal/setup"

// SetUp implements platform.Guided.
func (k *kind) SetUp(publicURL string) setup.Step {
	proof := setup.Proof{Areas: []string{string(Name)}}
	ways := []setup.Way{{
		Name: "socket", Title: "by Socket Mode, which needs no public address",
		Guide: []string{
			"Open the link below, choose your workspace and create the app; it has every setting filled in.",
			"Install App > Install to Workspace; copy the Bot User OAuth Token, xoxb-...",
			"Basic Information > App-Level Tokens > Generate, with the scope connections:write; copy the xapp-... token.",
		},
		Link: Manifest(publicURL, true).URL(),
		Fields: []setup.Field{
			{Name: "SLACK_BOT_TOKEN", Label: "Bot token, xoxb-...", Secret: true},
			{Name: "SLACK_APP_TOKEN", Label: "App-level token, xapp-...", Secret: true},
		},
		Set:   map[string]string{"SLACK_SIGNING_SECRET": ""},
		Proof: proof,
		Opens: "People can mention the bot in channels that it was invited to, write to it directly, and use /agent.",
	}}
	if publicURL != "" {
		ways = append(ways, setup.Way{
			Name: "http", Title: "by calls to " + publicURL,
			Guide: []string{
				"Open the link below, choose your workspace and create the app; it has every setting filled in.",
				"Install App > Install to Workspace; copy the Bot User OAuth Token, xoxb-...",
				"Basic Information > App Credentials: copy the Signing Secret.",
			},
			Link: Manifest(publicURL, false).URL(),
			Fields: []setup.Field{
				{Name: "SLACK_BOT_TOKEN", Label: "Bot token, xoxb-...", Secret: true},
				{Name: "SLACK_SIGNING_SECRET", Label: "Signing secret", Secret: true},
			},
			Set:   map[string]string{"SLACK_APP_TOKEN": ""},
			Proof: proof,
			Opens: "People can mention the bot in channels that it was invited to, write to it directly, and use /agent.",
		})
	}
	return setup.Step{Name: "slack", Title: "Slack", Ways: append(ways, setup.Way{
		Name: "off", Title: "turn Slack off",
		Set:   map[string]string{"SLACK_BOT_TOKEN": "", "SLACK_APP_TOKEN": "", "SLACK_SIGNING_SECRET": ""},
		Opens: "The bot no longer uses Slack.",
	})}
}
