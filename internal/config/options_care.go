package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/option"
)

// The options of how long data is kept. They belong to the table in options.go.

const groupCare = "Backups and retention"

const day = 24 * time.Hour

// minRetention leaves time for a platform to send an event again and for an
// operator to notice that something is wrong.
const minRetention = day

func (c *Config) careOptions() []option.Option {
	return []option.Option{
		{
			Name: "RETENTION_RAW", Default: "30d", Group: groupCare,
			Help:  "How long the raw bodies of processed events, deliveries and checkpoints are kept, such as 30d or 720h, at least 1d; off keeps them forever. The record that an event arrived is kept, and so is the last turn for /undo.",
			Parse: setRetention(&c.Retention.Raw),
		},
		{
			Name: "RETENTION_SESSIONS", Empty: "kept", Group: groupCare,
			Help:    "How long sessions, with their messages and tool calls, are kept after the last message, such as 365d; at least 1d.",
			Example: "365d",
			Parse:   setRetention(&c.Retention.Sessions),
		},
		{
			Name: "BACKUP_DIR", Empty: "DATA_DIR/backups", Group: groupCare,
			Help:    "Folder for `bot backup`; preferably on another disk.",
			Example: "/var/backups/bot",
			Parse:   option.Text(&c.BackupDir),
		},
	}
}

// Retention says how long data is kept; zero is for ever.
type Retention struct{ Raw, Sessions, Files time.Duration }

func setRetention(to *time.Duration) option.Parser {
	return func(text string) error {
		if text == "off" {
			*to = 0
			return nil
		}
		d, err := time.ParseDuration(text)
		if days, ok := strings.CutSuffix(text, "d"); ok {
			var n int
			n, err = strconv.Atoi(days)
			d = time.Duration(n) * day
			if n > 36_500 {
				d = 0
			}
		}
		if err != nil || d < minRetention {
			return fmt.Errorf("is %q: use a time of at least a day, such as 30d or 720h, or off to keep everything", text)
		}
		*to = d
		return nil
	}
}
