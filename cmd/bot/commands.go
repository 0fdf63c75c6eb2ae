package main

import "github.com/alecthomas/kong"

// commandLine is everything that can be said on the command line. Each command
// is in a file of its own.
type commandLine struct {
	// Plugins are the flags made from the table of options.
	kong.Plugins

	EnvFile string `help:"File with options (.env is read without it, if there is one)." name:"env-file" placeholder:"FILE"`

	Start       startCommand       `cmd:"" default:"1"                                                                  hidden:""`
	Serve       serveCommand       `cmd:"" help:"Run the daemon."`
	Config      configCommand      `cmd:"" help:"Show the effective options, or an example file."`
	Migrate     migrateCommand     `cmd:"" help:"Show or apply the changes to the database's schema; serve applies them too."`
	Demo        demoCommand        `cmd:"" help:"Play a conversation between emulated services, on screen and offline."`
	Bench       benchCommand       `cmd:"" help:"Measure latency and throughput against emulated services."`
	Repo        repoCommand        `cmd:"" help:"Add, list, fetch and remove repositories."`
	Memory      memoryCommand      `cmd:"" help:"Say how memories are found."`
	Agent       agentCommand       `cmd:"" help:"Create, list, change and remove agent profiles."`
	Sessions    sessionsCommand    `cmd:"" help:"List, show, search and delete what was said."`
	Messages    messagesCommand    `cmd:"" help:"List messages of a conversation, a session or a profile."`
	Costs       costsCommand       `cmd:"" help:"Sum up tokens and costs by person, codebase, model, day or conversation."`
	Person      personCommand      `cmd:"" help:"Let people in or shut them out; count or delete what is remembered of one."`
	Owner       ownerCommand       `cmd:"" help:"List, add and remove owners of the bot."`
	Halt        haltCommand        `cmd:"" help:"Stop everything on every replica until resume; also beside a running daemon."`
	Resume      resumeCommand      `cmd:"" help:"End a halt."`
	Export      exportCommand      `cmd:"" help:"Write the data as JSON Lines, CSV, Markdown or SQL."`
	Import      importCommand      `cmd:"" help:"Read what export wrote; nothing old is sent again."`
	Backup      backupCommand      `cmd:"" help:"Make, examine and restore backups."`
	Retention   retentionCommand   `cmd:"" help:"Remove what is past RETENTION_RAW and RETENTION_SESSIONS; serve does it too."`
	Audit       auditCommand       `cmd:"" help:"List the audit log, and verify that nobody changed it; the daemon may run."`
	Scrub       scrubCommand       `cmd:"" help:"Rewrite the database, so that nothing of what was deleted is left in its files."`
	Key         keyCommand         `cmd:"" help:"Make, list and revoke keys of the HTTP API."`
	Slack       slackCommand       `cmd:"" help:"Make the Slack app."`
	GitHub      githubCommand      `cmd:"" help:"Make the GitHub App." name:"github"`
	Healthcheck healthcheckCommand `cmd:"" help:"Ask the daemon at LISTEN_ADDR whether it runs; for containers."`
	Version     versionCommand     `cmd:"" help:"Print the version."`
}
