package main

// commandLine is everything that can be said on the command line. Each command
// is in a file of its own.
type commandLine struct {
	EnvFile string `help:"File with options, instead of .env." name:"env-file" placeholder:"FILE" global:""`
	Version bool   `help:"Print the version."`

	Serve  serveCommand  `cmd:"" group:"Run" help:"Run the daemon; bot alone does so with a chat here."`
	Demo   demoCommand   `cmd:"" group:"Run" help:"Play a conversation between emulated services, offline."`
	Bench  benchCommand  `cmd:"" group:"Run" help:"Measure latency and throughput against emulated services."`
	Halt   haltCommand   `cmd:"" group:"Run" help:"Stop everything on every replica until resume."`
	Resume resumeCommand `cmd:"" group:"Run" help:"End a halt."`

	Config configCommand `cmd:"" group:"Set up" help:"Show the effective options, or an example file."`
	Repo   repoCommand   `cmd:"" group:"Set up" help:"Add, list, fetch and remove repositories."`
	Agent  agentCommand  `cmd:"" group:"Set up" help:"Create, list, change and remove agent profiles."`
	Owner  ownerCommand  `cmd:"" group:"Set up" help:"List, add and remove owners of the bot."`
	Person personCommand `cmd:"" group:"Set up" help:"Let people in, shut them out, delete what is remembered."`
	Key    keyCommand    `cmd:"" group:"Set up" help:"Make, list and revoke keys of the HTTP API."`
	Slack  slackCommand  `cmd:"" group:"Set up" help:"Make the Slack app."`
	GitHub githubCommand `cmd:"" group:"Set up" help:"Make the GitHub App." name:"github"`

	Sessions sessionsCommand `cmd:"" group:"Look" help:"List, show, search and delete what was said."`
	Messages messagesCommand `cmd:"" group:"Look" help:"List messages of a conversation, a session or a profile."`
	Costs    costsCommand    `cmd:"" group:"Look" help:"Sum up tokens and costs by person, codebase, model or day."`
	Audit    auditCommand    `cmd:"" group:"Look" help:"List the audit log, and verify that nobody changed it."`
	Memory   memoryCommand   `cmd:"" group:"Look" help:"Say how memories are found."`

	Backup    backupCommand    `cmd:"" group:"Keep" help:"Make, examine and restore backups."`
	Export    exportCommand    `cmd:"" group:"Keep" help:"Write the data as JSON Lines, CSV, Markdown or SQL."`
	Import    importCommand    `cmd:"" group:"Keep" help:"Read what export wrote; nothing old is sent again."`
	Migrate   migrateCommand   `cmd:"" group:"Keep" help:"Show or apply changes to the schema; serve applies them."`
	Salvage   salvageCommand   `cmd:"" group:"Keep" help:"Copy what can be read of a damaged database."`
	Retention retentionCommand `cmd:"" group:"Keep" help:"Remove what is past its time; serve does so as well."`
	Scrub     scrubCommand     `cmd:"" group:"Keep" help:"Rewrite the database without a trace of what was deleted."`

	Completion  completionCommand  `cmd:"" group:"Program" help:"Print the completion for bash, zsh or fish."`
	Man         manCommand         `cmd:"" hidden:"" group:"Program" help:"Print the manual page."`
	Healthcheck healthcheckCommand `cmd:"" hidden:"" group:"Program" help:"Ask the daemon at LISTEN_ADDR if it runs; for containers."`
	Help        helpCommand        `cmd:"" hidden:"" group:"Program" help:"Explain a command; the same as --help."`
	VersionText versionCommand     `cmd:"" name:"version" group:"Program" help:"Print the version."`
}

// Run implements the command without a name: the daemon, with a chat here.
func (c commandLine) Run(p *program) error {
	if c.Version {
		return versionCommand{}.Run(p)
	}
	return startCommand{}.Run(p)
}
