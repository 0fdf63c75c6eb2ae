package main

import (
	"cmp"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/lmittmann/tint"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/fault"
	"remote-agent/internal/redact"
	"remote-agent/internal/resident"
)

// maxLogFile is how large the log file may be at a start; a larger one is set
// aside, in the place of an earlier one.
const maxLogFile = 32 << 20

// env returns what the application needs from the process.
func (p *program) env(log *slog.Logger, console bool) app.Env {
	return app.Env{
		Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr,
		Console: console, Terminal: bothTerminals(p.process), LogOnly: p.jsonLog, Version: version(), Log: log,
		Lookup: p.lookup, EnvFile: cmp.Or(p.source.EnvFile, config.EnvFile),
		Started: p.settle, Rush: resident.GiveRoom, Beside: resident.Trim, Interrupt: p.interrupt, Catch: p.catch,
	}
}

// settle is called once everything runs.
func (p *program) settle(app.Info) {
	if p.started != nil {
		p.started()
	}
	resident.Release()
}

// lookup finds a variable of the process environment.
func (p *program) lookup(name string) (string, bool) { return lookup(p.environ, name) }

// secrets returns everything that must not show in a log.
func secrets(cfg config.Config, environ []string) []string {
	return app.Secrets(cfg, func(name string) (string, bool) { return lookup(environ, name) })
}

func lookup(environ []string, name string) (string, bool) {
	for _, e := range environ {
		if k, v, ok := strings.Cut(e, "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// newLogger returns the program's logger, and lets what libraries say to the
// standard logger go through it: net/http prints bytes of answers there.
func (p *program) newLogger(cfg config.Config, console bool) (log *slog.Logger, closeLog func(), err error) {
	p.levels = &levels{console: console}
	p.jsonLog = isJSON(cfg.Log.Format, p.stderr)
	log, closeLog, err = newLogger(p.levels, cfg, p.stderr, p.environ)
	if err == nil {
		stdlog.SetFlags(0)
		stdlog.SetOutput(slog.NewLogLogger(log.With("component", "standard log").Handler(), slog.LevelDebug).Writer())
	}
	return log, closeLog, err
}

// levels are what the program's logger writes, which may change while it is used.
type levels struct {
	file, screen slog.LevelVar
	console      bool
}

// set changes them to LOG_LEVEL. A screen with a console gets warnings only.
func (l *levels) set(level slog.Level) {
	l.file.Set(level)
	if l.console {
		level = max(level, slog.LevelWarn)
	}
	l.screen.Set(level)
}

// newLogger returns the program's logger, which keeps credentials out. With a
// console it writes to DATA_DIR/log/bot.log, and only warnings to stderr.
func newLogger(at *levels, cfg config.Config, stderr io.Writer, environ []string) (log *slog.Logger, closeLog func(), err error) {
	closeLog = func() {}
	at.set(cfg.Log.Level)
	handler := screenHandler(cfg.Log.Format, stderr, &at.screen, environ)
	if at.console {
		file, err := openLog(cfg.DataDir)
		if err != nil {
			return nil, nil, err
		}
		closeLog = func() { _ = file.Close() } // nobody is left to tell
		handler = slog.NewMultiHandler(fileHandler(cfg.Log.Format, file, &at.file), handler)
	}
	return slog.New(redact.Handler(handler, redact.New(secrets(cfg, environ)...))), closeLog, nil
}

func screenHandler(format string, stderr io.Writer, level slog.Leveler, environ []string) slog.Handler {
	terminal := isTerminal(stderr)
	if isJSON(format, stderr) {
		return slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level})
	}
	noColor, _ := lookup(environ, "NO_COLOR") // no-color.org: any value but none
	return tint.NewTextHandler(stderr, &tint.Options{Level: level, TimeFormat: "15:04:05.000", NoColor: noColor != "" || !terminal})
}

// isJSON reports whether what is logged to stderr is JSON.
func isJSON(format string, stderr io.Writer) bool {
	return format == config.FormatJSON || format == config.FormatAuto && !isTerminal(stderr)
}

func fileHandler(format string, file io.Writer, level slog.Leveler) slog.Handler {
	if format == config.FormatText {
		return slog.NewTextHandler(file, &slog.HandlerOptions{Level: level})
	}
	return slog.NewJSONHandler(file, &slog.HandlerOptions{Level: level})
}

// openLog opens the log file for this user only (platform contracts S39).
func openLog(dataDir string) (*os.File, error) {
	dir := filepath.Join(dataDir, "log")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, logFault(dataDir, err)
	}
	path := filepath.Join(dir, "bot.log")
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogFile {
		_ = os.Rename(path, path+".1") // if that fails the log goes on growing
	}
	file, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, logFault(dataDir, err)
	}
	return file, nil
}

func logFault(dataDir string, err error) error {
	return &fault.Error{
		Kind:   fault.Invalid,
		Public: fmt.Sprintf("DATA_DIR %s is not writable: change its owner, or set DATA_DIR to another folder", dataDir),
		Err:    err,
	}
}
