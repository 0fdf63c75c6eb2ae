package acp

import (
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
)

// The names of the presets, and what they run if nothing else is said.
const (
	ClaudeName    assistant.Name = "claude"
	CodexName     assistant.Name = "codex"
	ClaudeCommand                = "claude-agent-acp"
	CodexCommand                 = "codex-acp"
)

// Claude returns the name, the command, the hints and the quiet environment of
// Claude Code. command is a command line for the option CLAUDE_COMMAND; empty
// means ClaudeCommand. The rest of Config, and the rest of Env, is the caller's.
func Claude(command string) (Config, error) {
	argv, err := commandOr(command, ClaudeCommand, "CLAUDE_COMMAND")
	return Config{
		Name: ClaudeName, Command: argv,
		InstallHint: "npm install -g @agentclientprotocol/claude-agent-acp@0.100.0",
		LoginHint:   fmt.Sprintf("Set ANTHROPIC_API_KEY for it, or log it in as the bot's user: `HOME=<AGENT_HOME>/claude %s --cli auth login`.", programOf(argv, ClaudeCommand, "CLAUDE_COMMAND")),
		Login:       []string{"--cli", "auth", "login"},
		Env: []string{
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
			// By default it repeats a refused request for the better part of a
			// minute, also where a repetition cannot help.
			"CLAUDE_CODE_MAX_RETRIES=2", "API_TIMEOUT_MS=300000",
		},
	}, err
}

// Codex is Claude for Codex and the option CODEX_COMMAND. It reads its
// configuration from the directory CODEX_HOME.
func Codex(command string) (Config, error) {
	argv, err := commandOr(command, CodexCommand, "CODEX_COMMAND")
	return Config{
		Name: CodexName, Command: argv,
		InstallHint: "npm install -g @agentclientprotocol/codex-acp@2.6.0",
		LoginHint:   fmt.Sprintf("Set CODEX_API_KEY for it, or log it in as the bot's user: `HOME=<AGENT_HOME>/codex %s login`.", programOf(argv, CodexCommand, "CODEX_COMMAND")),
		Login:       []string{"login"},
	}, err
}

// programOf returns what people call the program of an agent: its name, or the option that has
// its command, of which an operator may have made anything.
func programOf(argv []string, usual, option string) string {
	if slices.Equal(argv, []string{usual}) {
		return usual
	}
	return "<" + option + ">"
}

// LoginCommand returns the line for a shell that logs the agent in with a home, or nothing if
// it is not known how that is done.
func (c Config) LoginCommand(home string) string {
	if c.Login == nil {
		return ""
	}
	words := []string{"HOME=" + shellWord(home)}
	for _, word := range slices.Concat(c.Command, c.Login) {
		words = append(words, shellWord(word))
	}
	return strings.Join(words, " ")
}

func commandOr(command, otherwise, option string) ([]string, error) {
	if strings.TrimSpace(command) == "" {
		command = otherwise
	}
	parts, err := splitCommands(command)
	switch {
	case err != nil:
		return nil, fault.Newf(fault.Invalid, "%s: %v.", option, err)
	case len(parts) != 1:
		return nil, fault.Newf(fault.Invalid, "%s contains more than one command. Quote a semicolon that is part of it.", option)
	}
	return parts[0], nil
}

// asking is what makes agents ask that by default do what they like; every other one
// ignores it. It goes to all that the operator names, because a wrapper may hide which one
// it is. What subagents of opencode ask reaches no client of it, and they would wait for
// ever, so that they have no commands.
func asking() []string {
	const ask, deny = `{"bash":"ask","webfetch":"ask","websearch":"ask"}`, `{"permission":{"bash":"deny","webfetch":"deny","websearch":"deny"}}`
	return []string{
		"GOOSE_MODE=approve",
		"OPENCODE_PERMISSION=" + ask, `OPENCODE_CONFIG_CONTENT={"agent":{"general":` + deny + `,"explore":` + deny + `}}`,
	}
}

// ParseAgents reads the option ACP_AGENTS: "name=command args; name=command".
// Single and double quotes and the backslash quote as in a shell; nothing is
// expanded. It returns one Config with Name, Command, hints and what makes the
// agent ask in Env for each, in order, and a fault.Invalid that names what is
// wrong. builtIn are the names of assistants that are no external agents.
func ParseAgents(text string, builtIn ...assistant.Name) ([]Config, error) {
	entries, err := splitCommands(text)
	if err != nil {
		return nil, fault.Newf(fault.Invalid, "ACP_AGENTS: %v.", err)
	}
	var configs []Config
	for _, argv := range entries {
		name, program, ok := strings.Cut(argv[0], "=")
		agent := assistant.Name(name)
		switch {
		case !ok:
			return nil, fault.Newf(fault.Invalid, "ACP_AGENTS: %q is not name=command.", argv[0])
		case !validName.MatchString(name):
			return nil, fault.Newf(fault.Invalid, "ACP_AGENTS: %q cannot be a name: use 1 to 20 of a-z, 0-9, _ and -.", name)
		case slices.Contains(builtIn, agent):
			return nil, fault.Newf(fault.Invalid, "ACP_AGENTS: the name %q is that of a built-in assistant. Choose another one.", name)
		case slices.ContainsFunc(configs, func(c Config) bool { return c.Name == agent }):
			return nil, fault.Newf(fault.Invalid, "ACP_AGENTS: the name %q appears twice.", name)
		case program == "":
			return nil, fault.Newf(fault.Invalid, "ACP_AGENTS: %q has no command after the =.", name)
		}
		configs = append(configs, Config{
			Name: agent, Command: append([]string{program}, argv[1:]...),
			InstallHint: fmt.Sprintf("install the program %q, or correct ACP_AGENTS.", program),
			LoginHint:   fmt.Sprintf("Run its login command as the bot's user with `HOME=<AGENT_HOME>/%s` before it, or give it a key with AGENT_ENV.", name),
			Env:         asking(),
		})
	}
	return configs, nil
}

// splitCommands splits text at semicolons and each part into words. Empty parts
// are left out.
func splitCommands(text string) ([][]string, error) {
	s := splitter{}
	for _, c := range text {
		if err := s.next(c); err != nil {
			return nil, err
		}
	}
	switch {
	case s.escaped:
		return nil, fmt.Errorf("a backslash at the end quotes nothing")
	case s.quote != 0:
		return nil, fmt.Errorf("the quotation mark %c is not closed", s.quote)
	}
	s.endCommand()
	return s.commands, nil
}

type splitter struct {
	commands [][]string
	words    []string
	word     strings.Builder
	inWord   bool
	quote    rune
	escaped  bool
}

func (s *splitter) next(c rune) error {
	switch {
	case c == 0 || c == '\n' && s.quote != 0:
		return fmt.Errorf("a command cannot hold a line break or a NUL")
	case s.escaped:
		s.escaped = false
		if s.quote == '"' && c != '"' && c != '\\' {
			s.word.WriteByte('\\')
		}
		s.add(c)
	case c == '\\' && s.quote != '\'':
		s.escaped = true
	case s.quote != 0 && c == s.quote:
		s.quote = 0
	case s.quote != 0:
		s.add(c)
	case c == '\'' || c == '"':
		s.quote, s.inWord = c, true
	case c == ';':
		s.endCommand()
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		s.endWord()
	default:
		s.add(c)
	}
	return nil
}

func (s *splitter) add(c rune) {
	s.word.WriteRune(c)
	s.inWord = true
}

func (s *splitter) endWord() {
	if s.inWord {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.inWord = false
}

func (s *splitter) endCommand() {
	s.endWord()
	if len(s.words) > 0 {
		s.commands = append(s.commands, s.words)
	}
	s.words = nil
}
