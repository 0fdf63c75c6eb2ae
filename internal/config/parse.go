package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
)

func (c *Config) parseListenAddr(text string) error {
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

func (c *Config) parseDatabaseURL(text string) error {
	if path, ok := strings.CutPrefix(text, "sqlite:"); ok {
		path = strings.TrimPrefix(path, "//")
		if path == "" || strings.ContainsAny(path, "?\x00") {
			return errors.New("names no file, or one with a ? in its name: use sqlite:PATH, such as sqlite:./data/bot.db")
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
		return errors.New("is not supported: use sqlite:PATH or postgres://user:password@host/name, or leave it empty for SQLite in DATA_DIR")
	}
	if u.Host == "" && u.Query().Get("host") == "" {
		return errors.New("names no host: use postgres://user:password@host/name")
	}
	c.Database = Database{Driver: DriverPostgres, URL: NewSecret(text)}
	return nil
}

func (c *Config) parseAssistant(text string) error {
	v := strings.ToLower(text)
	if !assistantName.MatchString(v) {
		return fmt.Errorf("is %q: use %s, claude, codex, demo or a name from ACP_AGENTS", text, strings.Join(modelNames(c.Sections), ", "))
	}
	c.Assistant = v
	return nil
}

// parseHosts reads a list of hosts, each with an optional port.
func (c *Config) parseHosts(text string) error {
	var hosts []string
	for _, f := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		u, err := url.Parse("https://" + f)
		if err != nil || u.Host != f || u.Hostname() == "" || strings.ContainsAny(f, "*@/?#") {
			return fmt.Errorf("contains %q: use comma-separated host names, such as github.com,git.example.com:8443", f)
		}
		hosts = append(hosts, f)
	}
	if len(hosts) == 0 {
		return errors.New("contains no host: use comma-separated host names, such as github.com")
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
