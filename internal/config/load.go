package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

const fileSuffix = "_FILE"

// Source is where options are read from.
type Source struct {
	// Flags holds the flags that were given, by name without dashes.
	Flags map[string]string

	// Environ is the environment as os.Environ returns it.
	Environ []string

	// EnvFile is the file to read; empty means .env, which may be missing.
	EnvFile string
}

// Problems lists everything that is wrong with a configuration. Each is one
// line that names the option, what is wrong and what to do. None holds a
// secret.
type Problems []string

// Error returns all problems, one a line.
func (p Problems) Error() string { return strings.Join(p, "\n") }

// value is what an option was set to.
type value struct {
	text   string // empty means the default's meaning
	origin string
}

// layer is one place that options come from.
type layer struct {
	name   string
	values map[string]string
}

// loader collects what is found on the way.
type loader struct {
	config   Config
	layers   []layer // environment, then file
	flags    map[string]string
	problems Problems
	failed   map[string]bool // options that have a problem of their own
}

// Load reads, parses and checks all options. The error is Problems, with every
// problem at once. It changes neither the environment nor any file.
//
// An option that is set to nothing in one place is not looked for in the places
// below: that is how to get a default back.
func Load(src Source) (Config, error) {
	l := &loader{flags: src.Flags, failed: map[string]bool{}}
	l.config.values = map[string]value{}

	path := src.EnvFile
	if path == "" {
		path = EnvFile
	}
	file, err := readEnvFile(path, src.EnvFile != "")
	whole := true
	if err != nil {
		l.problems = append(l.problems, err.Error())
		whole = false
	}
	environment := map[string]string{}
	for _, entry := range src.Environ {
		if name, text, ok := strings.Cut(entry, "="); ok {
			environment[name] = text
		}
	}
	l.layers = []layer{{"environment", environment}, {filepath.Base(path), file}}

	for _, o := range options {
		l.option(o)
	}
	l.config.Warnings = append(l.config.Warnings, unknownKeys(filepath.Base(path), file)...)
	if whole {
		l.derive()
		l.check()
	}
	if len(l.problems) > 0 {
		return Config{}, l.problems
	}
	return l.config, nil
}

// option finds, parses and stores one option.
func (l *loader) option(o Option) {
	v, label, err := l.find(o)
	if err != nil {
		l.fail(o.Name, label, err)
		return
	}
	l.config.values[o.Name] = v
	if v.text == "" {
		return
	}
	if err := o.parse(&l.config, v.text); err != nil {
		l.fail(o.Name, label, err)
	}
}

// find returns the value of an option and what to call its source in a problem.
func (l *loader) find(o Option) (v value, label string, err error) {
	if text, ok := l.flags[o.Flag()]; ok {
		label = "--" + o.Flag()
		if o.Secret {
			v, err = l.secretFile(o.Name, text)
			return v, label, err
		}
		return orDefault(o, text, "flag "+label), label, nil
	}
	if err := l.bothSet(o); err != nil {
		return value{}, o.Name, err
	}
	for _, place := range l.layers {
		v, label, ok, err := l.inLayer(o, place)
		if ok || err != nil {
			return v, label, err
		}
	}
	return value{text: o.Default, origin: "default"}, o.Name, nil
}

// bothSet refuses a secret that is set itself and by file: one of them is a
// leftover, and guessing which would use the wrong credential.
func (l *loader) bothSet(o Option) error {
	if !o.Secret {
		return nil
	}
	var text, file string
	for _, place := range l.layers {
		if text == "" && place.values[o.Name] != "" {
			text = place.name
		}
		if file == "" && place.values[o.Name+fileSuffix] != "" {
			file = place.name
		}
	}
	if text == "" || file == "" {
		return nil
	}
	return fmt.Errorf("is set (%s) and so is %s%s (%s): remove one of them", text, o.Name, fileSuffix, file)
}

// inLayer looks an option up in one place, under all its names.
func (l *loader) inLayer(o Option, place layer) (v value, label string, ok bool, err error) {
	label = fmt.Sprintf("%s (%s)", o.Name, place.name)
	if path := place.values[o.Name+fileSuffix]; o.Secret && path != "" {
		label = fmt.Sprintf("%s%s (%s)", o.Name, fileSuffix, place.name)
		v, err := l.secretFile(o.Name, path)
		return v, label, true, err
	}
	text, set := place.values[o.Name]
	if strings.TrimSpace(text) != "" {
		return orDefault(o, text, place.name), label, true, nil
	}
	for _, alias := range o.Aliases {
		other := strings.TrimSpace(place.values[alias.Name])
		if other == "" {
			continue
		}
		label := fmt.Sprintf("%s (%s)", alias.Name, place.name)
		if alias.convert != nil {
			if other, err = alias.convert(other); err != nil {
				return value{}, label, true, err
			}
		}
		if alias.Renamed {
			l.warn("%s is an older name: write %s", label, o.Name)
		}
		return value{text: other, origin: fmt.Sprintf("%s, %s", place.name, alias.Name)}, label, true, nil
	}
	if set {
		return orDefault(o, "", place.name), label, true, nil
	}
	return value{}, "", false, nil
}

func orDefault(o Option, text, origin string) value {
	text = strings.TrimSpace(text)
	if text == "" {
		return value{text: o.Default, origin: "default, empty in " + origin}
	}
	return value{text: text, origin: origin}
}

// derive fills what follows from other options.
func (l *loader) derive() {
	c := &l.config
	if c.Database.Driver == "" {
		c.Database = Database{Driver: DriverSQLite, Path: filepath.Join(c.DataDir, "bot.db")}
	}
	if c.WorkspacePath == "" {
		c.WorkspacePath = filepath.Join(c.DataDir, "workspace")
	}
	if c.BackupDir == "" {
		c.BackupDir = filepath.Join(c.DataDir, "backups")
	}
	if c.Assistant == "" && !l.failed["DEFAULT_AI_ASSISTANT"] {
		switch {
		case c.OpenAI.Configured():
			c.Assistant = AssistantOpenAI
		case c.Anthropic.Configured():
			c.Assistant = AssistantAnthropic
		default:
			c.Assistant = AssistantDemo
		}
	}
	if c.Agents.Home == "" {
		c.Agents.Home = filepath.Join(c.DataDir, "agents")
	}
	if c.GitHub.Mode == "" && c.GitHub.WebhookSecret.IsSet() {
		c.GitHub.Mode = ModeWebhook
	}
}

// check holds the rules that concern several options. A rule is skipped if one
// of its options has a problem already.
func (l *loader) check() {
	c := &l.config
	if c.Assistant == AssistantOpenAI && !c.OpenAI.Configured() && l.sound("OPENAI_API_KEY", "OPENAI_BASE_URL") {
		l.problem("DEFAULT_AI_ASSISTANT is openai but there is nothing to ask: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own")
	}
	if c.Assistant == AssistantAnthropic && !c.Anthropic.Configured() && l.sound("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL") {
		l.problem("DEFAULT_AI_ASSISTANT is anthropic but there is nothing to ask: set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a server of your own")
	}
	if t := c.Anthropic.ThinkingTokens; t > 0 && (t < 1024 || t >= c.Anthropic.MaxTokens) && l.sound("ANTHROPIC_THINKING_TOKENS", "ANTHROPIC_MAX_TOKENS") {
		l.problem("ANTHROPIC_THINKING_TOKENS is %d: use 0, or a number from 1024 to below ANTHROPIC_MAX_TOKENS (%d)", t, c.Anthropic.MaxTokens)
	}
	if c.Telegram.Mode == ModeWebhook {
		l.checkWebhook()
	}
	l.checkGitHub()
	l.checkSlack()
	if c.Telegram.Allowed.Everyone {
		l.warn("TELEGRAM_ALLOWED_USER_IDS is *: everybody on Telegram may talk to the bot and use up your model's budget")
	}
	if c.OpenAI.APIKey.IsSet() && plainHTTPAbroad(c.OpenAI.BaseURL) {
		l.warn("OPENAI_BASE_URL is http:// on another machine: the key and all messages travel unencrypted; use https://")
	}
	if c.Telegram.Token.IsSet() && plainHTTPAbroad(c.Telegram.APIURL) {
		l.warn("TELEGRAM_API_URL is http:// on another machine: the token and all messages travel unencrypted; use https://")
	}
}

// checkGitHub checks that the adapter has an identity and a way in.
func (l *loader) checkGitHub() {
	g, c := l.config.GitHub, &l.config
	app := g.AppID != "" || g.PrivateKey.IsSet()
	if app && l.sound("GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY") {
		switch {
		case c.Git.Token.IsSet():
			l.problem("GITHUB_TOKEN is set and so is a GitHub App (GITHUB_APP_ID): keep one of them, so that it is clear who acts")
		case g.AppID == "":
			l.problem("GITHUB_APP_PRIVATE_KEY is set but GITHUB_APP_ID is not: both are on the page of the app")
		case !g.PrivateKey.IsSet():
			l.problem("GITHUB_APP_ID is set but GITHUB_APP_PRIVATE_KEY is not: make a key on the page of the app and set GITHUB_APP_PRIVATE_KEY_FILE")
		}
	}
	if g.Mode == "" || !l.sound("GITHUB_MODE", "GITHUB_APP_ID", "GITHUB_TOKEN", "GITHUB_WEBHOOK_SECRET", "PUBLIC_URL", "GITHUB_REPOSITORIES") {
		return
	}
	if !app && !c.Git.Token.IsSet() {
		l.problem("GITHUB_MODE is %s but the bot has no identity on GitHub: set GITHUB_APP_ID with GITHUB_APP_PRIVATE_KEY_FILE, or GITHUB_TOKEN", g.Mode)
	}
	switch {
	case g.Mode == ModeWebhook && !g.WebhookSecret.IsSet():
		l.problem("GITHUB_WEBHOOK_SECRET is not set but GITHUB_MODE is webhook: set it to the output of `openssl rand -hex 32`, or use GITHUB_MODE=poll")
	case g.Mode == ModePoll && !app && len(g.Repositories) == 0:
		l.problem("GITHUB_REPOSITORIES is not set: with a token the bot cannot know which repositories to look at; set it to owner/name, with commas")
	}
	if plainHTTPAbroad(g.APIURL) {
		l.warn("GITHUB_API_URL is http:// on another machine: tokens and all comments travel unencrypted; use https://")
	}
}

// checkSlack checks that events can come in.
func (l *loader) checkSlack() {
	s := l.config.Slack
	if s.BotToken.IsSet() && !s.AppToken.IsSet() && !s.SigningSecret.IsSet() && l.sound("SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET") {
		l.problem("SLACK_BOT_TOKEN is set but no events can come in: set SLACK_APP_TOKEN (Socket Mode), or SLACK_SIGNING_SECRET with PUBLIC_URL (HTTP)")
	}
	if !s.BotToken.IsSet() && (s.AppToken.IsSet() || s.SigningSecret.IsSet()) && l.sound("SLACK_BOT_TOKEN") {
		l.problem("SLACK_BOT_TOKEN is not set: Slack needs it besides SLACK_APP_TOKEN or SLACK_SIGNING_SECRET")
	}
	if s.Everyone {
		l.warn("SLACK_ALLOWED_USER_IDS is *: everybody in the workspace may talk to the bot and use up your model's budget")
	}
}

func (l *loader) checkWebhook() {
	c := &l.config
	if l.sound("PUBLIC_URL", "TELEGRAM_API_URL") {
		// Only a Bot API server of one's own calls a plain http address.
		ownServer := c.Telegram.APIURL != officialTelegramAPI
		switch {
		case c.PublicURL == "":
			l.problem("PUBLIC_URL is not set but TELEGRAM_MODE is webhook: set it to the https:// address of this server, or use TELEGRAM_MODE=poll")
		case !strings.HasPrefix(c.PublicURL, "https://") && !ownServer:
			l.problem("PUBLIC_URL is not https:// but TELEGRAM_MODE is webhook: Telegram calls https:// addresses only; change it, or use TELEGRAM_MODE=poll")
		}
	}
	if l.sound("TELEGRAM_WEBHOOK_SECRET") && !c.Telegram.WebhookSecret.IsSet() {
		l.problem("TELEGRAM_WEBHOOK_SECRET is not set but TELEGRAM_MODE is webhook: set it to the output of `openssl rand -hex 32`, or use TELEGRAM_MODE=poll")
	}
}

// plainHTTPAbroad reports whether address is unencrypted and leaves the machine.
func plainHTTPAbroad(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// sound reports whether none of the options has a problem of its own.
func (l *loader) sound(names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return l.failed[n] })
}

func (l *loader) fail(name, label string, err error) {
	l.failed[name] = true
	l.problem("%s %s", label, err.Error())
}

func (l *loader) problem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

func (l *loader) warn(format string, args ...any) {
	l.config.Warnings = append(l.config.Warnings, fmt.Sprintf(format, args...))
}

// AsProblems returns the problems in the chain of err, if there are any.
func AsProblems(err error) (Problems, bool) { return errors.AsType[Problems](err) }

// sortedKeys returns the keys of m in order.
func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
