package journey_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/app"
	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/store/storetest"
	"remote-agent/internal/waittest"
)

// profiles creates or changes profiles beside the running bot, as an operator
// does.
func (w *world) profiles(yaml string) {
	w.t.Helper()
	cfg := w.config()
	w.operator("import profiles", func(env app.Env) error {
		return app.AgentImport(w.t.Context(), cfg, env, app.ProfileFile{Text: []byte(yaml)})
	})
}

// dressed answers with what the model saw of the profile: the model's name, how
// many messages there were, the tools, and the end of the system prompt.
func dressed(r openai.Request) openai.Response {
	text, _, _ := strings.Cut(r.Messages[0].Text(), "\n\nYou talk with")
	return openai.Text(fmt.Sprintf("model %s, tools %v, [%d messages], %s", r.Model, toolNames(r), len(r.Messages)-1, text[strings.LastIndex(text, "\n")+1:]))
}

func toolNames(r openai.Request) []string {
	names := make([]string, len(r.Tools))
	for i, t := range r.Tools {
		names[i] = t.Function.Name
	}
	slices.Sort(names)
	return names
}

const twoProfiles = `
name: reviewer
description: reviews what others wrote
system_prompt: Be strict.
knowledge: releases are on Mondays
plugins: [remember]
model_tier: smart
---
name: writer
group: team
system_prompt: Be kind.
plugins: [fetch_url, recall]
`

func TestTwoProfilesAnswerDifferently(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.ai.Script(dressed)
		w.with(map[string]string{"MODEL_SMART": "openai:clever-model", "FETCH_URL": "on", "SYSTEM_PROMPT": "Everybody reads this."}).start()
		w.says(ann, "/agent")
		w.seesText(ann, "There are no profiles yet")
		w.profiles(twoProfiles)
		w.says(ann, "/agent")
		w.seesText(ann, "default, in use here", "reviewer: reviews what others wrote", "team/writer")
		w.says(ann, "hello")
		w.seesText(ann, "model test-model", "[1 messages]", "Everybody reads this.")

		w.says(ann, "/agent Reviewer")
		w.seesText(ann, "reviewer is in use here now, in a new session", "The previous session ended")
		w.says(bob, "/agent writer")
		w.seesText(bob, "team/writer is in use here now")
		w.says(ann, "first")
		w.seesText(ann, "model clever-model", "tools [remember]", "[1 messages], - releases are on Mondays")
		w.says(bob, "first")
		w.seesText(bob, "model test-model", "tools [fetch_url recall]", "[1 messages], Be kind.")
		if text := w.asked(); !strings.Contains(text, "Everybody reads this.") {
			t.Errorf("the service's own prompt is missing: %s", text)
		}

		t.Log("a change takes effect with the next turn, in the same session, also while the bot runs")
		w.profiles(strings.ReplaceAll(twoProfiles, "releases are on Mondays", "releases are on Fridays"))
		w.says(ann, "second")
		w.seesText(ann, "[3 messages], - releases are on Fridays")
		w.says(ann, "/status")
		w.seesText(ann, "profile: reviewer, version 2")

		t.Log("it survives a restart, and what a person chooses goes before it")
		w.restart()
		w.says(ann, "/model other-model")
		w.seesText(ann, "other-model answers from the next message on")
		w.says(ann, "third")
		w.seesText(ann, "model other-model", "[5 messages], - releases are on Fridays")

		w.says(ann, "/agent reviwer")
		w.seesText(ann, "There is no profile reviwer. Did you mean reviewer?")
		w.says(ann, "/agent default")
		w.seesText(ann, "default is in use here now")
		w.says(ann, "fourth")
		w.seesText(ann, "model other-model", "[1 messages], Everybody reads this.")
		w.says(ann, "/agent default")
		w.seesText(ann, "default is already in use here")
		names := strings.Join(w.rows(`SELECT agent_name, CAST(agent_id AS TEXT) IS NOT NULL FROM remote_agent_sessions ORDER BY id`), "; ")
		if db := strings.NewReplacer("| 1", "| true", "| 0", "| false").Replace(names); db != "default | false; reviewer | true; team/writer | true; default | false" {
			t.Errorf("the sessions are of %s", db)
		}
	})
}

// Tools that are gone, and a model that is not there, are told once; the turn runs.
func TestWhatAProfileLacksIsToldOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.ai.Script(dressed)
		w.start()
		w.profiles("name: keeper\nplugins: [remember, fetch_url, read_file]\nmodel_tier: cheap\n")
		w.says(ann, "/agent keeper")
		w.seesText(ann, "keeper", "model tier cheap is not configured")
		for i := range 3 {
			w.says(ann, fmt.Sprint("question ", i))
			w.seesText(ann, "model test-model", "tools [remember]", fmt.Sprintf("[%d messages]", 2*i+1))
		}
		told := 0
		for _, text := range w.tg.ChatView(ann).BotTexts() {
			if strings.Contains(text, "the tool fetch_url is not available here") {
				told++
			}
		}
		if told != 1 {
			t.Errorf("told %d times: %q", told, w.tg.ChatView(ann).BotTexts())
		}
	})
}

// A profile narrows: it caps what the model sees of the session and of memory, how
// often it is asked, and what it may do.
func TestAProfileNarrows(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		w.profiles("name: brief\nmemory: {enabled: false, short_term_memory_size: 3}\n---\nname: halting\nmax_iterations: 2\nplugins: [remember]\n")
		w.says(ann, "/remember I prefer "+canary)
		w.seesText(ann, "Saved as memory")
		w.ai.Script(counting)
		w.says(ann, "/agent brief")
		w.seesText(ann, "brief is in use here")
		for i, want := range []int{1, 3, 3} {
			answers := len(w.tg.ChatView(ann).BotTexts())
			w.says(ann, fmt.Sprint("question ", i))
			w.sees(ann, "an answer", func(texts []string) bool {
				return len(texts) > answers && strings.Contains(texts[len(texts)-1], fmt.Sprintf("[%d messages]", want))
			})
		}
		if text := w.asked(); strings.Contains(text, canary) || strings.Contains(text, "tool remember") {
			t.Errorf("memory is off, and the model read %s", text)
		}
		w.says(ann, "/agent halting")
		w.seesText(ann, "halting is in use here")
		w.ai.Script(nil)
		w.ai.Enqueue(openai.Calls(call("remember", `{"fact":"likes tea"}`)), openai.Calls(call("remember", `{"fact":"likes coffee"}`)))
		w.says(ann, "go on for ever")
		w.seesText(ann, "made 2 model requests")
	})
}

// The group is removed with all that belongs to it, and people are told.
func TestRemovingAGroupOfProfiles(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.ai.Script(dressed)
		w.start()
		w.profiles("name: one\ngroup: team\nsystem_prompt: I am one.\nobjectives: look\ninterval: 3600\n---\nname: two\nsystem_prompt: I am two.\n")
		w.says(ann, "/agent one")
		w.seesText(ann, "team/one is in use here", "standing task")
		w.says(ann, "/schedule on")
		w.seesText(ann, "runs its standing task here every hour")
		w.says(bob, "/agent two")
		w.seesText(bob, "two is in use here")
		w.says(ann, "hello")
		w.seesText(ann, "- look")
		cfg := w.config()
		question := ""
		out := w.operator("remove a group", func(env app.Env) error {
			return app.AgentRemove(t.Context(), cfg, env, "", "team", func(q string) bool {
				question = q
				return true
			})
		})
		const counted = "1 profile, 1 standing task, 0 memories saved by them; 1 conversation returns to the default"
		if !strings.Contains(question, counted) || !strings.Contains(out, counted) {
			t.Errorf("asked %q, printed %q", question, out)
		}
		w.says(ann, "hello again")
		w.seesText(ann, "The profile team/one was removed")
		w.seesText(ann, "model test-model", "[3 messages], - When you are stuck")
		w.says(bob, "hello")
		w.seesText(bob, "I am two.")
		w.says(ann, "/schedule")
		w.seesText(ann, "No standing task is on here")
	})
}

// clock is a time that a test moves.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).UnixMilli())
	return c
}

func (c *clock) now() time.Time       { return time.UnixMilli(c.ms.Load()) }
func (c *clock) pass(d time.Duration) { c.ms.Add(d.Milliseconds()) }

const watcher = "name: watcher\nobjectives: [Look at the gauges.]\ninterval: 3600\n"

// runsOf counts the runs of the standing task that the model was asked for.
func (w *world) runsOf() (n int) {
	for _, r := range w.ai.Requests() {
		if last := r.Messages[len(r.Messages)-1]; strings.Contains(last.Text(), "Look at the gauges") && last.Role == "user" {
			n++
		}
	}
	return n
}

func TestAStandingTaskRunsOnSchedule(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		c := newClock()
		w.now = c.now
		answers := 0
		w.ai.Script(func(openai.Request) openai.Response {
			answers++
			return openai.Text(fmt.Sprintf("report %d", answers))
		})
		w.start()
		w.says(ann, "/schedule on")
		w.seesText(ann, "No profile selected")
		w.profiles(watcher + "---\nname: idle\n")
		w.says(ann, "/agent idle")
		w.seesText(ann, "idle is in use here")
		w.says(ann, "/schedule on")
		w.seesText(ann, "has no standing task because its interval is 0")
		w.says(ann, "/agent watcher")
		w.seesText(ann, "watcher is in use here", "/schedule on runs it here")
		w.says(ann, "/schedule on")
		w.seesText(ann, "every hour on your behalf, first at 2026-11-21 13:00 UTC")
		w.says(ann, "/schedule list")
		w.seesText(ann, "here, watcher every hour, by User 42", "0 runs so far")

		c.pass(time.Hour)
		w.seesText(ann, "report 1")

		t.Log("after a time without the bot it is one run, not five")
		w.shutdown()
		c.pass(5 * time.Hour)
		w.start()
		w.seesText(ann, "report 2")
		w.says(ann, "/schedule")
		w.seesText(ann, "2 runs so far", "next at 2026-11-21 19:00 UTC")
		w.restart()
		c.pass(time.Hour)
		w.seesText(ann, "report 3")

		t.Log("while one run works there is no second one")
		c.pass(time.Hour)
		w.seesText(ann, "report 4")
		if n := w.runsOf(); n != 4 {
			t.Errorf("%d runs, want 4", n)
		}
		w.says(ann, "/schedule off")
		w.seesText(ann, "The standing task is off")
		c.pass(24 * time.Hour)
		w.restart() // it begins with a sweep
		w.says(ann, "/schedule")
		w.seesText(ann, "No standing task is on here")
		if n := w.runsOf(); n != 4 {
			t.Errorf("%d runs after it was switched off, want 4", n)
		}
	})
}

// A run that has not ended keeps the next ones away; they are not made up for.
func TestOneRunAtATime(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		c := newClock()
		w.now = c.now
		stuck := w.hang()
		w.start()
		w.profiles(watcher)
		w.says(ann, "/agent watcher")
		w.seesText(ann, "watcher is in use here")
		w.says(ann, "/schedule on")
		w.seesText(ann, "on your behalf")
		c.pass(time.Hour)
		w.seesText(ann, stuck)
		c.pass(3 * time.Hour)
		w.nextRun("2026-11-21 17:00:00")
		w.says(ann, "/stop")
		w.seesText(ann, "Stopped")
		w.ai.Script(func(openai.Request) openai.Response { return openai.Text("all is well") })
		c.pass(time.Hour)
		w.seesText(ann, "all is well")
		if n := w.runsOf(); n != 2 {
			t.Errorf("%d runs, want 2", n)
		}
	})
}

// nextRun waits until a sweep has moved the standing task to a time.
func (w *world) nextRun(at string) {
	w.t.Helper()
	want, err := time.Parse(time.DateTime, at)
	if err != nil {
		w.t.Fatal(err)
	}
	waittest.Until(w.t, "next run at "+at+" with one run so far", func() bool {
		return slices.Equal(w.rows(`SELECT next_ms, runs FROM agent_schedules`), []string{fmt.Sprintf("%d | 1", want.UnixMilli())})
	})
}

// Whoever can no longer use the bot has no standing tasks either.
func TestAStandingTaskEndsWithTheRightsOfItsMaker(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		const group = int64(-1001)
		c := newClock()
		w.now = c.now
		w.tg.AddChat(telegram.Chat{ID: group, Type: telegram.Supergroup, Title: "Team"})
		w.start()
		w.profiles(watcher)
		b := w.tg.Person(bob).In(group)
		b.Says("/agent@acme_bot watcher")
		w.seesText(group, "watcher is in use here")
		b.Says("/schedule@acme_bot on")
		w.seesText(group, "on your behalf")
		w.shutdown()
		w.with(map[string]string{"TELEGRAM_ALLOWED_USER_IDS": itoa(ann)})
		c.pass(time.Hour)
		w.start()
		w.seesText(group, "The standing task of watcher is off: User 77, who turned it on, ", "can no longer use this bot")
		c.pass(time.Hour)
		w.restart()
		if n := w.runsOf(); n != 0 {
			t.Errorf("%d runs in the name of somebody who may not", n)
		}
	})
}

// A chat that gets a new row, because a real assistant answers now or another one
// takes over, keeps its profile and its standing task.
func TestAStandingTaskMovesWithTheChat(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		c := newClock()
		w.now = c.now
		w.with(map[string]string{"OPENAI_API_KEY": "", "OPENAI_BASE_URL": "", "OPENAI_MODEL": ""}).start()
		w.profiles(watcher)
		w.says(ann, "/agent watcher")
		w.seesText(ann, "watcher is in use here")
		w.says(ann, "/schedule on")
		w.seesText(ann, "on your behalf")
		w.shutdown()
		w.with(map[string]string{"OPENAI_API_KEY": key, "OPENAI_BASE_URL": w.ai.URL(), "OPENAI_MODEL": "test-model"})
		w.ai.Script(func(r openai.Request) openai.Response {
			return openai.Text("answer to " + r.Messages[len(r.Messages)-1].Text())
		})
		c.pass(time.Hour)
		w.start()
		w.seesText(ann, "openai answers from now on")
		w.seesText(ann, "answer to Scheduled run of watcher", "Look at the gauges")
		w.says(ann, "/schedule")
		w.seesText(ann, "1 run so far", "next at 2026-11-21 14:00 UTC")
		w.says(ann, "/status")
		w.seesText(ann, "profile: watcher")
		if n := w.runsOf(); n != 1 {
			t.Errorf("%d runs, want 1", n)
		}
	})
}

// On several replicas exactly one runs it.
func TestReplicasRunAStandingTaskOnce(t *testing.T) {
	t.Parallel()
	c := newClock()
	w := newWorld(t, storetest.PostgresURL(t))
	w.now = c.now
	var answers atomic.Int64
	w.ai.Script(func(openai.Request) openai.Response { return openai.Text(fmt.Sprintf("report %d", answers.Add(1))) })
	w.start()
	second := w.replica().start()
	w.profiles(watcher)
	w.says(ann, "/agent watcher")
	w.seesText(ann, "watcher is in use here")
	w.says(ann, "/schedule on")
	w.seesText(ann, "on your behalf")
	for i := range 3 {
		c.pass(time.Hour)
		if i == 1 {
			second.restart() // its start looks for what is due as well
		}
		w.seesText(ann, fmt.Sprintf("report %d", i+1))
	}
	w.says(ann, "/schedule")
	w.seesText(ann, "3 runs so far")
	if n := w.runsOf(); n != 3 {
		t.Errorf("%d runs, want 3", n)
	}
}

// A profile brings MCP servers along: they are started for its turns, under the
// same rules, and others do not see them; a change ends them. Nobody reads their secrets.
func TestAProfileBringsMCPServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").migrated()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "weather")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec "+self+" "+asMCPServer+"\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	w.with(map[string]string{"TOOL_READ_PATHS": filepath.Dir(self) + "," + filepath.Dir(script)}).start()
	forecaster := fmt.Sprintf("name: forecaster\nplugins: [mcp__weather__*]\nmcp_servers:\n  weather: {command: %q, env: {WEATHER_TOKEN: drizzle-umbrella}}\n", script)
	w.profiles(forecaster)
	w.says(ann, "/agent forecaster")
	w.seesText(ann, "forecaster is in use here")
	w.ai.Enqueue(openai.Calls(call("mcp__weather__forecast", `{"city":"Bonn"}`)), openai.Text("It rains, says drizzle-umbrella."))
	w.says(ann, "what is the weather?")
	w.seesText(ann, "✋", "a-1", "Bonn")
	w.press(ann, "Allow")
	w.seesText(ann, "It rains, says [redacted].")
	w.ai.Script(dressed)
	w.says(bob, "what have you got?")
	w.sees(bob, "an answer", func(texts []string) bool {
		return len(texts) > 0 && strings.Contains(texts[0], "tools [") && !strings.Contains(texts[0], "mcp__")
	})
	w.profiles(strings.ReplaceAll(forecaster, "weather: ", "weather: # the same\n    ") + "description: changed\n")
	w.says(ann, "and now?")
	w.seesText(ann, "tools [mcp__weather__forecast]")
	w.profiles("name: forecaster\nplugins: [remember]\n")
	w.says(ann, "and without?")
	w.seesText(ann, "tools [remember]")
}

// TestAnAgentHasTheMCPServersOfItsProfile: they run where those of others do, each call is asked
// about, and the agent reads no value of theirs. What changes holds in the session that it resumes.
func TestAnAgentHasTheMCPServersOfItsProfile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").migrated()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "weather")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n[ \"$WEATHER_KEY\" = "+canary+" ] && exec "+self+" "+asMCPServer+"\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	record := filepath.Join(w.env["DATA_DIR"], "agents", "robot", "record")
	w.withAgent(acpagent.Script{HTTP: true, Resume: true, Record: record, Turns: []acpagent.Turn{
		{Match: "what have you got", Steps: []acpagent.Step{{Use: &acpagent.Use{}}}},
		{Match: "the weather", Steps: []acpagent.Step{{Use: &acpagent.Use{Server: "weather", Tool: "forecast", Input: json.RawMessage(`{"city":"Bonn"}`)}}}},
	}})
	w.with(map[string]string{"TOOL_READ_PATHS": w.env["TOOL_READ_PATHS"] + "," + filepath.Dir(self) + "," + filepath.Dir(script)}).start()
	forecaster := fmt.Sprintf("name: forecaster\nplugins: [mcp__weather__*]\nmcp_servers:\n  weather: {command: %q, env: {WEATHER_KEY: %s}}\n", script, canary)
	w.profiles(forecaster)
	w.says(ann, "/agent forecaster")
	w.seesText(ann, "forecaster is in use here")
	w.says(ann, "tell me the weather")
	w.seesText(ann, "✋", "a-1", "weather: forecast", "Bonn")
	w.press(ann, "Allow")
	w.seesText(ann, "rain in Bonn")
	w.seesText(ann, "robot has its own tools, which plugins does not limit")
	if got := w.rows("SELECT tool_name, status FROM agent_tool_calls"); fmt.Sprint(got) != "[mcp__weather__forecast | completed]" {
		t.Errorf("on record are %v", got)
	}
	w.says(ann, "/mode ask")
	w.seesText(ann, "ask")
	w.says(ann, "and now the weather, please")
	w.seesText(ann, "error: not run: this conversation is read-only now")

	w.profiles(strings.ReplaceAll(forecaster, "mcp__weather__*", "remember"))
	w.says(ann, "what have you got without it?")
	w.seesText(ann, "no such server")
	w.restart()
	w.profiles(strings.ReplaceAll(strings.ReplaceAll(forecaster, "weather: ", "climate: "), "weather__", "climate__"))
	w.says(ann, "so what have you got now?")
	w.seesText(ann, "climate has forecast.")
	if got := w.rows("SELECT count(DISTINCT assistant_session_id) FROM remote_agent_sessions WHERE assistant_session_id <> ''"); fmt.Sprint(got) != "[1]" {
		t.Errorf("%v sessions of the agent, want one that was resumed", got)
	}
	heard, err := os.ReadFile(record)
	if err != nil || !strings.Contains(string(heard), `"name":"climate"`) || strings.Contains(string(heard), canary) || strings.Contains(string(heard), script) {
		t.Errorf("the agent heard\n%s\n%v", heard, err)
	}
}

// In Slack "/agent" is the bot's own command: behind it, and in a thread, the name
// of a profile is a command and a sentence is not.
func TestProfilesInSlack(t *testing.T) {
	t.Parallel()
	w := newSlackWorld(t, "", "Socket").migrated()
	w.ai.Script(dressed)
	w.start()
	w.profiles("name: reviewer\nsystem_prompt: Be strict.\n")
	bot := w.sl.BotUser()
	root := w.sl.User(slackAn).In(channel).Says("<@" + bot + "> hello")
	w.threadShows(root.TS, "[1 messages]")
	thread := w.sl.User(slackAn).In(channel).InThread(root.TS)
	thread.Says("<@" + bot + "> agent reviewer")
	w.threadShows(root.TS, "reviewer", "is in use here now")
	thread.Says("<@" + bot + "> agent of change, what is that?")
	w.threadShows(root.TS, "[1 messages], Be strict.")
	thread.Says("<@" + bot + "> agent default")
	w.threadShows(root.TS, "default", "is in use here now")
}
