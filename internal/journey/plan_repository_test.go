package journey_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // how the database is changed from outside

	"remote-agent/internal/emulator/openai"
)

// planningRepo is a repository as people have them: its commands say nothing of
// plans but by their names.
var planningRepo = map[string]string{
	"README.md":                        "# web\n",
	".claude/commands/plan-feature.md": "Write a plan for: $ARGUMENTS\n",
	".claude/commands/execute.md":      "Execute the plan. $ARGUMENTS\n",
	".claude/commands/ship.md":         "---\ndescription: Ship it\n---\nShip exactly this: $PLAN\n",
	".claude/commands/planetarium.md":  "---\nproduces: none\n---\nShow the stars.\n",
	".claude/commands/implement-x.md":  "---\nproduces: plan\n---\nPlan how to implement $ARGUMENTS.\n",
}

// last returns what the model was asked last: what stands in the request besides a
// system prompt, by role, and the newest text of the person.
func (w *world) last() (roles, text string) {
	w.t.Helper()
	requests := w.ai.Requests()
	r := requests[len(requests)-1]
	roles = strings.TrimPrefix(strings.Join(r.Roles(), " "), "system ")
	return roles, r.LastUserText()
}

// plans returns the plans and their states.
func (w *world) plans() string {
	w.t.Helper()
	return strings.Join(w.rows("SELECT number, version, state FROM plans ORDER BY number, version"), "; ")
}

func TestRepositoryWithItsOwnPlanFeatureAndExecute(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(planningRepo)
		w.start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		w.says(ann, "/commands")
		w.seesText(ann, "/plan_feature (writes a plan)", "/execute (executes a plan)",
			"/implement_x (⚠ writes a plan according to its front matter, although by its name it executes a plan)",
			"/planetarium (⚠ does not use plans according to its front matter", "/ship Ship it")

		t.Log("seed 002's own case")
		w.ai.Enqueue(openai.Text("1. Add a switch.\n2. Test it."))
		w.says(ann, `/command-invoke plan-feature "Add dark mode"`)
		w.seesText(ann, "Add a switch", "Plan p-1, version 1")
		w.settles()
		metadata := w.rows("SELECT CAST(metadata AS TEXT) FROM remote_agent_sessions ORDER BY id")
		if len(metadata) != 1 || !strings.Contains(strings.ReplaceAll(metadata[0], " ", ""), `"lastCommand":"plan-feature"`) {
			t.Errorf("the session remembers %q", metadata)
		}
		w.ai.Enqueue(openai.Text("The switch is there."))
		w.says(ann, "/command-invoke execute")
		w.seesText(ann, "The switch is there.")
		w.settles()
		if roles, text := w.last(); roles != "user" || text != "Execute the plan. \n\n\nPlan:\n\n1. Add a switch.\n2. Test it." {
			t.Errorf("executing sees %s and %q", roles, text)
		}
		if got := w.plans(); got != "1 | 1 | done" {
			t.Errorf("the plans are %s", got)
		}
		ended := w.rows("SELECT active, parent_session_id IS NOT NULL FROM remote_agent_sessions ORDER BY id")
		if got := strings.NewReplacer("1", "true", "0", "false").Replace(strings.Join(ended, "; ")); got != "false | false; true | true" {
			t.Errorf("the sessions are %s", got)
		}

		t.Log("a plan that is named runs, in a fresh session, whatever was said since")
		w.ai.Enqueue(openai.Text("1. Remove the switch."))
		w.says(ann, "/plan-feature no dark mode")
		w.seesText(ann, "Remove the switch", "Plan p-2")
		w.says(ann, "/planetarium")
		w.seesText(ann, "echo: Show the stars.")
		w.restart()
		w.ai.Enqueue(openai.Text("It is gone."))
		w.says(ann, "/execute p-2 and mind the docs")
		w.seesText(ann, "It is gone.")
		w.settles()
		if roles, text := w.last(); roles != "user" || text != "Execute the plan. and mind the docs\n\n\nPlan:\n\n1. Remove the switch." {
			t.Errorf("executing sees %s and %q", roles, text)
		}
		if got := w.plans(); got != "1 | 1 | done; 2 | 1 | done" {
			t.Errorf("the plans are %s", got)
		}

		t.Log("by a command that says nothing of plans")
		w.ai.Enqueue(openai.Text("1. Ship."))
		w.says(ann, "/implement-x the ship")
		w.seesText(ann, "1. Ship.", "Plan p-3")
		w.says(ann, "/approve p-3 slowly")
		w.seesText(ann, "Approved plan")
		w.says(ann, "/command-invoke ship p-3")
		w.seesText(ann, "echo: Ship exactly this: 1. Ship.", "Arguments: slowly [1 messages]")
		w.settles()
		if got := w.plans(); !strings.HasSuffix(got, "; 3 | 1 | done") {
			t.Errorf("the plans are %s", got)
		}
		w.says(ann, "/execute p-3")
		w.seesText(ann, "✖ Plan p-3 (version 1) is already done.")
		w.says(ann, "/execute p-9")
		w.seesText(ann, "✖ There is no plan p-9 here.")
		w.says(ann, "/ship p-9")
		w.seesText(ann, "echo: Ship exactly this:", "Arguments: p-9")

		t.Log("a button")
		w.ai.Enqueue(openai.Text("1. By button."))
		w.says(ann, "/plan-feature buttons")
		w.seesText(ann, "By button", "Plan p-4")
		message, run := w.button(ann, "Approve and run")
		w.tg.Person(ann).Presses(message, run)
		w.seesText(ann, "echo: Execute the plan.", "1. By button. [1 messages]")
	})
}

// change changes the database as somebody does who has its address.
func (w *world) change(statement string) {
	w.t.Helper()
	driver, address := "sqlite", "file:"+w.env["DATA_DIR"]+"/bot.db?_pragma=busy_timeout(5000)"
	if url := w.env["DATABASE_URL"]; url != "" {
		driver, address = "pgx", url
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // the statement is committed
	if _, err := db.ExecContext(w.ctx(), statement); err != nil {
		w.t.Fatal(err)
	}
}

// What an import of seed 002 left is honored: lastCommand alone.
func TestImportedLastCommandBeginsAFreshSession(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello [1 messages]")
		w.settles()
		w.change(`UPDATE remote_agent_sessions SET metadata = '{"lastCommand":"plan-feature"}'`)
		w.says(ann, "/command-invoke execute")
		w.seesText(ann, "there is no plan in this conversation yet", "[1 messages]")
		if got := fmt.Sprint(w.rows("SELECT count(*) FROM remote_agent_sessions")); got != "[2]" {
			t.Errorf("there are %s sessions", got)
		}
	})
}

// "Approve and run" of the built-in prompts tells the plan and not its name.
func TestApproveAndRunDoesNotNameThePlan(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		w.ai.Enqueue(openai.Text("1. Do it."))
		w.says(ann, "/plan it")
		w.seesText(ann, "Do it", "Plan p-1")
		message, run := w.button(ann, "Approve and run")
		w.tg.Person(ann).Presses(message, run)
		w.seesText(ann, "echo: Carry out this plan", "1. Do it.")
		w.settles()
		if _, text := w.last(); strings.Contains(text, "Note") || strings.Contains(text, "p-1") {
			t.Errorf("the executing session is told %q", text)
		}
	})
}
