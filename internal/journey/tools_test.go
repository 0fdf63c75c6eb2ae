package journey_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/waittest"
)

// rows reads the bot's database as an auditor would.
func (w *world) rows(query string) (out []string) {
	w.t.Helper()
	add := func(values []any) {
		text := make([]string, len(values))
		for i, v := range values {
			if b, ok := v.([]byte); ok {
				v = string(b)
			}
			text[i] = fmt.Sprint(v)
		}
		out = append(out, strings.Join(text, " | "))
	}
	if url := w.env["DATABASE_URL"]; url != "" {
		conn, err := pgx.Connect(w.ctx(), url)
		if err != nil {
			w.t.Fatal(err)
		}
		defer conn.Close(context.Background()) //nolint:errcheck // only read
		rows, err := conn.Query(w.ctx(), query)
		if err != nil {
			w.t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			values, err := rows.Values()
			if err != nil {
				w.t.Fatal(err)
			}
			add(values)
		}
		return out
	}
	db, err := sql.Open("sqlite", "file:"+w.env["DATA_DIR"]+"/bot.db?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // only read
	rows, err := db.QueryContext(w.ctx(), query)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // only read
	columns, err := rows.Columns()
	if err != nil {
		w.t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			w.t.Fatal(err)
		}
		add(values)
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// press presses the newest button with a label in a private chat.
func (w *world) press(user int64, label string) {
	w.t.Helper()
	message, data := w.button(user, label)
	w.tg.Person(user).Presses(message, data)
}

// call is one tool call of the scripted model.
func call(name, arguments string) openai.Call { return openai.Call{Name: name, Arguments: arguments} }

// sumRepo is a small repository with a failing test. The test is a shell script,
// so that the journey does not wait for a compiler.
var sumRepo = map[string]string{
	"sum.sh":  "#!/bin/sh\necho $(($1 - $2))\n",
	"test.sh": "#!/bin/sh\ngot=$(sh sum.sh 2 3)\nif [ \"$got\" != 5 ]; then echo \"FAIL: 2+3 = $got, want 5\"; exit 1; fi\necho ok\n",
}

func TestToolsFindAndFixAFailingTest(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		w.start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")

		t.Log("the first command asks; the turn is put aside, across a restart")
		w.ai.Enqueue(
			openai.Calls(call("list_files", `{}`), call("read_file", `{"path":"sum.sh"}`)),
			openai.Calls(call("bash", `{"command":"sh test.sh"}`)),
		)
		w.says(ann, "the test fails, please fix it")
		w.seesText(ann, "✋", "a-1", "sh test.sh", "is not run")
		w.says(ann, "yes, looks good") // free text never approves
		w.restart()
		if got := w.rows("SELECT tool_name, status FROM agent_tool_calls ORDER BY id"); fmt.Sprint(got) != "[list_files | completed read_file | completed bash | pending]" {
			t.Errorf("calls while a person is asked: %v", got)
		}
		w.says(bob, "/approve a-1")
		w.seesText(bob, "Only the person who asked")

		t.Log("always allowed from now on: the second run of the test does not ask")
		w.ai.Enqueue(
			openai.Calls(call("edit_file", `{"path":"sum.sh","old":"$1 - $2","new":"$1 + $2"}`)),
			openai.Calls(call("bash", `{"command":"sh test.sh"}`)),
			openai.Text("Fixed: the sum subtracted."),
		)
		w.press(ann, "Always allow this")
		w.seesText(ann, "Fixed: the sum subtracted.")
		w.seesText(ann, "a-1", "Approved by User 42")
		w.seesText(ann, "✔ Worked for", "1 edit", "2 commands", "2 reads")
		requests := w.ai.Requests()
		if text := requests[len(requests)-1].LastUserText(); !strings.Contains(text, "yes, looks good") {
			t.Errorf("what was said meanwhile did not reach the model: %q", text)
		}

		t.Log("the audit tells the whole story")
		story := w.rows("SELECT tool_name, status, response FROM agent_tool_calls ORDER BY id")
		for i, want := range []string{"list_files | completed", "read_file | completed", "bash | failed", "edit_file | completed", "bash | completed"} {
			if i >= len(story) || !strings.HasPrefix(story[i], want) {
				t.Errorf("call %d: %q, want %s", i+1, story, want)
				break
			}
		}
		if !strings.Contains(story[2], "2+3 = -1") || !strings.Contains(story[4], "ok") {
			t.Errorf("results: %q", story)
		}
		audit := strings.Join(w.rows("SELECT actor, action, target FROM audit_log ORDER BY id"), "\n")
		if !strings.Contains(audit, "telegram/42 | approval.allowed | a-1") {
			t.Errorf("audit:\n%s", audit)
		}
		w.says(ann, "/diff")
		w.seesText(ann, "sum.sh", "1 file changed")
		w.says(ann, "/allow")
		w.seesText(ann, "Always allowed", "sh test.sh", "telegram/42")
		w.says(ann, "/cost")
		w.seesText(ann, "Used so far", "tokens")
	})
}

func TestToolsModesAndPlansOnlyRead(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		w.start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		w.says(ann, "/mode auto")
		w.seesText(ann, "Only an owner")
		w.says(ann, "/mode ask")
		w.seesText(ann, "Mode is now ask")

		w.ai.Enqueue(
			openai.Calls(call("write_file", `{"path":"sum.sh","content":"gone"}`), call("bash", `{"command":"rm -f sum.sh"}`)),
			openai.Text("I may not."),
		)
		w.says(ann, "delete everything")
		w.seesText(ann, "I may not.")
		w.says(ann, "/mode edit")
		w.seesText(ann, "Mode is now edit")
		w.ai.Enqueue(
			openai.Calls(call("write_file", `{"path":"sum.sh","content":"gone"}`)),
			openai.Text("1. Rewrite it."),
		)
		w.says(ann, "/plan rewrite it")
		w.seesText(ann, "1. Rewrite it.", "Plan p-1")
		for _, row := range w.rows("SELECT tool_name, status, error_details FROM agent_tool_calls ORDER BY id") {
			if !strings.Contains(row, "failed") || !strings.Contains(row, "read-only") {
				t.Errorf("a read-only turn left %q", row)
			}
		}
		w.says(ann, "/diff")
		w.seesText(ann, "No changes on")
	})
}

func TestToolsOfTheDaemonsSecretsSeeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").migrated()
	_, url := w.withRepository(sumRepo)
	w.with(map[string]string{"SYSTEM_PROMPT": "Be brief."}).start()
	w.says(ann, "/clone "+url)
	w.seesText(ann, "Cloned")
	spy := fmt.Sprintf("env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; cat %s/bot.db | head -c 100; cat .git; ls %s; echo end", w.env["DATA_DIR"], w.env["DATA_DIR"])
	w.ai.Enqueue(openai.Calls(call("bash", fmt.Sprintf(`{"command":%q}`, spy))), openai.Text("Looked."))
	w.says(ann, "look around")
	w.press(ann, "Run it")
	w.seesText(ann, "Looked.")
	requests := w.ai.Requests()
	last := requests[len(requests)-1]
	seen := last.Messages[len(last.Messages)-1].Text()
	if !strings.Contains(seen, "end") {
		t.Fatalf("the command did not run: %s", seen)
	}
	for _, secret := range []string{key, token, "SQLite format", "TELEGRAM"} {
		if strings.Contains(seen, secret) {
			t.Errorf("a command of the model saw %q:\n%s", secret, seen)
		}
	}
}

func TestToolsStopEndsTheProgramAndTheNextTurnWorks(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		w.start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		w.ai.Enqueue(openai.Calls(call("bash", `{"command":"touch started; sleep 600; touch ended"}`)))
		w.says(ann, "wait for it")
		w.press(ann, "Run it")
		w.waitTree("started")
		w.says(ann, "/stop")
		w.seesText(ann, "⏹ Stopped")
		w.says(ann, "and now?")
		w.seesText(ann, "echo: and now?")
		got := w.rows("SELECT tool_name, status FROM agent_tool_calls")
		if fmt.Sprint(got) != "[bash | failed]" {
			t.Errorf("the stopped call: %v", got)
		}
	})
}

// waitTree waits until the conversation's only worktree has a file.
func (w *world) waitTree(name string) {
	w.t.Helper()
	waittest.Until(w.t, "the worktree has "+name, func() bool { return len(w.trees(name)) > 0 })
}

func TestToolsSteering(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		w.start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		gate := emulator.NewGate()
		w.ai.Enqueue(
			openai.Reply(append([]openai.Step{openai.Gate(gate)}, openai.CallSteps(call("read_file", `{"path":"sum.sh"}`))...)...),
			openai.Text("I heard you."),
		)
		w.says(ann, "look at the sum")
		if _, err := w.ai.WaitRequest(w.ctx(), 1); err != nil {
			t.Fatal(err)
		}
		w.says(ann, "and mind the tests")
		w.says(ann, "/status")
		w.seesText(ann, "Running", "1 queued")
		gate.Open()
		w.seesText(ann, "I heard you.")
		requests := w.ai.Requests()
		last := requests[len(requests)-1]
		if text := last.LastUserText(); !strings.Contains(text, "mind the tests") {
			t.Errorf("the model was not told meanwhile: %q", text)
		}
		w.restart()
		w.says(ann, "next")
		w.seesText(ann, "echo: next")
		if n := len(w.ai.Requests()); n != 3 {
			t.Errorf("%d requests: the steering message had a turn of its own", n)
		}
	})
}

func TestToolsLimitsAskWhetherToGoOn(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		_, url := w.withRepository(sumRepo)
		w.with(map[string]string{"MAX_ROUNDS": "2"}).start()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		w.ai.Enqueue(
			openai.Calls(call("read_file", `{"path":"sum.sh"}`)),
			openai.Calls(call("read_file", `{"path":"test.sh"}`)),
			openai.Calls(call("list_files", `{}`)),
			openai.Text("Read it all."),
		)
		w.says(ann, "read everything")
		w.seesText(ann, "✋", "a-1", "Continue this turn?", "2 model requests")
		w.restart()
		w.press(ann, "Continue")
		w.seesText(ann, "Read it all.")

		t.Log("a second turn is not allowed to go on")
		w.ai.Enqueue(
			openai.Calls(call("read_file", `{"path":"sum.sh"}`)),
			openai.Calls(call("read_file", `{"path":"test.sh"}`)),
		)
		w.says(ann, "again")
		w.seesText(ann, "✋", "a-2", "Continue this turn?")
		w.says(ann, "/deny a-2 enough")
		w.seesText(ann, "Stopped here", "a-2")
		w.says(ann, "hello")
		w.seesText(ann, "echo: hello")
	})
}
