package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const officialTelegramAPI = "https://api.telegram.org"

type duration time.Duration

type parser = func(c *Config, text string) error

func setText(field func(*Config) *string) parser {
	return func(c *Config, text string) error {
		if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
			return errors.New("is not text: remove bytes that are not UTF-8")
		}
		*field(c) = text
		return nil
	}
}

func setSecret(field func(*Config) *Secret) parser {
	return func(c *Config, text string) error {
		if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return errors.New("has a space or a line break in it: copy it again")
		}
		*field(c) = NewSecret(text)
		return nil
	}
}

func setInt(field func(*Config) *int, low, high int) parser {
	return func(c *Config, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < low || n > high {
			return fmt.Errorf("is %q: use a whole number from %d to %d", text, low, high)
		}
		*field(c) = n
		return nil
	}
}

func setRate(field func(*Config) *float64) parser {
	return func(c *Config, text string) error {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n < 0 || math.IsInf(n, 0) || math.IsNaN(n) {
			return fmt.Errorf("is %q: use messages per second such as 30 or 0.5, or 0 for no limit", text)
		}
		*field(c) = n
		return nil
	}
}

func setDuration(field func(*Config) *duration, positive bool) parser {
	return func(c *Config, text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 || (positive && d == 0) {
			return fmt.Errorf("is %q: use a time with its unit, such as 30s, 10m or 1h", text)
		}
		*field(c) = duration(d)
		return nil
	}
}

func setChoice(set func(c *Config, v string), choices ...string) parser {
	return func(c *Config, text string) error {
		v := strings.ToLower(text)
		if !slices.Contains(choices, v) {
			return fmt.Errorf("is %q: use %s", text, orList(choices))
		}
		set(c, v)
		return nil
	}
}

func setLevel(c *Config, v string) {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	c.Log.Level = levels[v]
}

func setURL(field func(*Config) *string) parser {
	return func(c *Config, text string) error {
		u, err := url.Parse(text)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return errors.New("is not an address: use http:// or https:// with a host")
		}
		if u.User != nil {
			return errors.New("holds a user name or password: take it out")
		}
		if u.RawQuery != "" || u.Fragment != "" {
			return errors.New(`has a "?" or "#" in it: use the address up to the path`)
		}
		*field(c) = strings.TrimRight(text, "/")
		return nil
	}
}

func parsePublicURL(c *Config, text string) error {
	return setURL(func(c *Config) *string { return &c.PublicURL })(c, text)
}

func parseListenAddr(c *Config, text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("is %q: use host:port, such as 127.0.0.1:3000", text)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("has the port %q: use a number from 0 to 65535", port)
	}
	c.ListenAddr = net.JoinHostPort(host, port)
	return nil
}

// listenOnPort turns PORT into an address. Platforms that set PORT often want
// all interfaces; that stays a decision to be made with LISTEN_ADDR.
func listenOnPort(text string) (string, error) {
	if n, err := strconv.Atoi(text); err != nil || n < 0 || n > 65535 {
		return "", fmt.Errorf("is %q: use a number from 0 to 65535", text)
	}
	return net.JoinHostPort("127.0.0.1", text), nil
}

func parseDatabaseURL(c *Config, text string) error {
	if path, ok := strings.CutPrefix(text, "sqlite:"); ok {
		path = strings.TrimPrefix(path, "//")
		if path == "" || strings.ContainsAny(path, "?\x00") {
			return errors.New("names no file: use sqlite:PATH, such as sqlite:./data/bot.db")
		}
		c.Database = Database{Driver: DriverSQLite, Path: filepath.FromSlash(path)}
		return nil
	}
	u, err := url.Parse(text)
	if err != nil {
		// The parser's own words would show the password.
		return errors.New("is not an address: percent-encode special characters of the password")
	}
	if u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return errors.New("is of a kind that is not supported: use sqlite:PATH or postgres://user:password@host/name, or leave it empty for SQLite in DATA_DIR")
	}
	if u.Host == "" && u.Query().Get("host") == "" {
		return errors.New("names no host: use postgres://user:password@host/name")
	}
	c.Database = Database{Driver: DriverPostgres, URL: NewSecret(text)}
	return nil
}

func parseAssistant(c *Config, text string) error {
	v := strings.ToLower(text)
	if !assistantName.MatchString(v) {
		return fmt.Errorf("is %q: use openai, anthropic, claude, codex, demo or a name of ACP_AGENTS", text)
	}
	c.Assistant = v
	return nil
}

var tokenPattern = regexp.MustCompile(`^[0-9]+:[^\s/?#%]+$`)

func parseToken(c *Config, text string) error {
	if !tokenPattern.MatchString(text) {
		return errors.New("is not a bot token: copy the whole line <digits>:<letters> from @BotFather")
	}
	c.Telegram.Token = NewSecret(text)
	return nil
}

// secretPattern is what setWebhook allows (Bot API, secret_token).
var secretPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{16,256}$`)

func parseWebhookSecret(c *Config, text string) error {
	if !secretPattern.MatchString(text) {
		return errors.New("is too short or has characters that Telegram does not allow: use 16 to 256 of A-Z a-z 0-9 _ -, for example from `openssl rand -hex 32`")
	}
	c.Telegram.WebhookSecret = NewSecret(text)
	return nil
}

func parseAllowed(c *Config, text string) error {
	list := AllowList{}
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' || r == ' ' || r == '\t' || r == '\n' })
	if len(fields) == 0 {
		return fmt.Errorf("is %q: use numeric ids with commas, or leave it empty", text)
	}
	for _, f := range fields {
		if f == "*" {
			list.Everyone = true
			continue
		}
		id, err := strconv.ParseInt(f, 10, 64)
		switch {
		case err != nil:
			return fmt.Errorf("has %q in it, which is not a numeric id: names can be given up and taken by somebody else, so use the number that /whoami tells", f)
		case id <= 0:
			return fmt.Errorf("has %q in it, which is a group and not a person: use the numbers of people, which /whoami tells", f)
		}
		if !slices.Contains(list.IDs, id) {
			list.IDs = append(list.IDs, id)
		}
	}
	c.Telegram.Allowed = list
	return nil
}

// parsePrefixed reads a token whose kind shows in its first letters.
func parsePrefixed(prefix string, field func(*Config) *Secret) parser {
	return func(c *Config, text string) error {
		if !strings.HasPrefix(text, prefix) || strings.ContainsAny(text, " \t\n") {
			return fmt.Errorf("is not a token of the right kind: it begins with %s", prefix)
		}
		*field(c) = NewSecret(text)
		return nil
	}
}

// slackUser is a user id of Slack. Names can be changed and taken by others.
var slackUser = regexp.MustCompile(`^[UW][A-Z0-9]{2,30}$`)

func parseSlackAllowed(c *Config, text string) error {
	c.Slack.Everyone, c.Slack.Allowed = false, nil
	for _, f := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		switch {
		case f == "*":
			c.Slack.Everyone = true
		case !slackUser.MatchString(f):
			return fmt.Errorf("has %q in it, which is not a user id such as U012AB3CD; names can be given up and taken by somebody else", f)
		default:
			c.Slack.Allowed = append(c.Slack.Allowed, f)
		}
	}
	return nil
}

// numericID is the id of a person on Telegram and of an account on GitHub.
var numericID = regexp.MustCompile(`^[1-9][0-9]{0,18}$`)

// parseOwners reads a list of people who own the bot, by ids of a form.
func parseOwners(form *regexp.Regexp, what string, field func(*Config) *[]string) parser {
	return func(c *Config, text string) error {
		var ids []string
		for _, f := range list(text) {
			if !form.MatchString(f) {
				return fmt.Errorf("has %q in it, which is nobody's id: names can be given up and taken by somebody else, so use %s", f, what)
			}
			if !slices.Contains(ids, f) {
				ids = append(ids, f)
			}
		}
		if len(ids) == 0 {
			return errors.New("names nobody: list ids with commas, or take the option out")
		}
		*field(c) = ids
		return nil
	}
}

// UserIDForm returns the form that ids of people have on a platform, and what to
// call one; ok is false for a platform that has no such list.
func UserIDForm(platform string) (form *regexp.Regexp, what string, ok bool) {
	switch platform {
	case "telegram", "github":
		return numericID, "a positive number", true
	case "slack":
		return slackUser, "a user id such as U012AB3CD", true
	}
	return nil, "", false
}

// parseHosts reads a list of hosts, each with an optional port.
func parseHosts(c *Config, text string) error {
	var hosts []string
	for _, f := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		u, err := url.Parse("https://" + f)
		if err != nil || u.Host != f || u.Hostname() == "" || strings.ContainsAny(f, "*@/?#") {
			return fmt.Errorf("has %q in it: use host names with commas, such as github.com,git.example.com:8443", f)
		}
		hosts = append(hosts, f)
	}
	if len(hosts) == 0 {
		return errors.New("names no host: use host names with commas, such as github.com")
	}
	c.Git.Hosts = hosts
	return nil
}

// maskURL hides the password of an address.
func maskURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return redacted
	}
	if u.Opaque != "" || u.Host == "" { // sqlite:PATH has no password
		return text
	}
	masked := u.Scheme + "://"
	if u.User != nil {
		masked += u.User.Username()
		if _, ok := u.User.Password(); ok {
			masked += ":" + redacted
		}
		masked += "@"
	}
	masked += u.Host + u.EscapedPath()
	if u.RawQuery != "" {
		masked += "?" + redacted // may hold a password= or sslpassword=
	}
	return masked
}

// urlPasswords returns the passwords in the address of a database.
func urlPasswords(text string) []string {
	u, err := url.Parse(text)
	if err != nil {
		return nil
	}
	var out []string
	if password, ok := u.User.Password(); ok && password != "" {
		out = append(out, password)
	}
	for _, key := range []string{"password", "sslpassword"} {
		if password := u.Query().Get(key); password != "" {
			out = append(out, password)
		}
	}
	return out
}

func orList(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
