package main

// commandLine is everything that can be said on the command line. Each command
// is in a file of its own.
type commandLine struct {
	EnvFile string `help:"Read options from FILE instead of .env." name:"env-file" placeholder:"FILE" global:""`
	Version bool   `help:"Print the version."`

	Serve  serveCommand  `cmd:"" group:"Run" help:"Run the daemon; bot alone adds a chat in this terminal."`
	Chat   chatCommand   `cmd:"" group:"Run" help:"Talk to the bot here, or ask it one question from a script."`
	Demo   demoCommand   `cmd:"" group:"Run" help:"Play a demo conversation, offline with emulated services."`
	Bench  benchCommand  `cmd:"" group:"Run" help:"Measure latency and throughput against emulated services."`
	Chaos  chaosCommand  `cmd:"" group:"Run" help:"Test reliability with kills and faults, offline."`
	Halt   haltCommand   `cmd:"" group:"Run" help:"Stop all work on every replica until resume."`
	Resume resumeCommand `cmd:"" group:"Run" help:"Resume after a halt."`

	Setup     setupCommand     `cmd:"" group:"Set up" help:"Set up the model, platforms and people, step by step."`
	Doctor    doctorCommand    `cmd:"" group:"Set up" help:"Check the installation and show how to fix what is wrong."`
	Config    configCommand    `cmd:"" group:"Set up" help:"Show the options in effect, or an example .env file."`
	Repo      repoCommand      `cmd:"" group:"Set up" help:"Add, list, fetch and remove repositories."`
	Agent     agentCommand     `cmd:"" group:"Set up" help:"Create, list, change and remove agent profiles."`
	Owner     ownerCommand     `cmd:"" group:"Set up" help:"List, add and remove owners of the bot."`
	OwnerLink ownerLinkCommand `cmd:"" group:"Set up" help:"Print a link that signs you in to the web pages." name:"owner-link"`
	Person    personCommand    `cmd:"" group:"Set up" help:"Allow or remove people, and delete memories of them."`
	Key       keyCommand       `cmd:"" group:"Set up" help:"Create, list and revoke API keys."`
	Slack     slackCommand     `cmd:"" group:"Set up" help:"Print the Slack app manifest."`
	GitHub    githubCommand    `cmd:"" group:"Set up" help:"Print the GitHub App manifest." name:"github"`

	Sessions sessionsCommand `cmd:"" group:"Look" help:"List, show, search and delete sessions."`
	Messages messagesCommand `cmd:"" group:"Look" help:"List the messages of a conversation, session or profile."`
	Costs    costsCommand    `cmd:"" group:"Look" help:"Total tokens and costs by person, repository, model or day."`
	Audit    auditCommand    `cmd:"" group:"Look" help:"List the audit log, or verify that it was not altered."`
	Memory   memoryCommand   `cmd:"" group:"Look" help:"Show how memories are found."`

	Backup    backupCommand    `cmd:"" group:"Keep" help:"Create, verify and restore backups."`
	Export    exportCommand    `cmd:"" group:"Keep" help:"Export data as JSON Lines, CSV, Markdown or SQL."`
	Import    importCommand    `cmd:"" group:"Keep" help:"Import an export; nothing old is sent again."`
	Migrate   migrateCommand   `cmd:"" group:"Keep" help:"Show or apply schema migrations; serve applies them too."`
	Salvage   salvageCommand   `cmd:"" group:"Keep" help:"Copy what is readable from a damaged database."`
	Retention retentionCommand `cmd:"" group:"Keep" help:"Remove data past its retention; serve does this too."`
	Scrub     scrubCommand     `cmd:"" group:"Keep" help:"Rewrite the database so that no deleted data remains."`

	Completion  completionCommand  `cmd:"" group:"Program" help:"Print shell completion for bash, zsh or fish."`
	Man         manCommand         `cmd:"" hidden:"" group:"Program" help:"Print the manual page."`
	Healthcheck healthcheckCommand `cmd:"" hidden:"" group:"Program" help:"Check that the daemon at LISTEN_ADDR is healthy; for containers."`
	Help        helpCommand        `cmd:"" hidden:"" group:"Program" help:"Explain a command; same as --help."`
	VersionText versionCommand     `cmd:"" name:"version" group:"Program" help:"Print the version."`
}

// Run implements the command without a name: the daemon, with a chat here.
func (c commandLine) Run(p *program) error {
	if c.Version {
		return versionCommand{}.Run(p)
	}
	return startCommand{}.Run(p)
}
