package journey_test

import (
	"fmt"
	"strings"
	"testing"

	"remote-agent/internal/app"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
)

// An owner sees what all used, others their own, and a group no names.
func TestCostsByPersonCodebaseModelAndDay(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		const group = int64(-1001)
		w.tg.AddChat(telegram.Chat{ID: group, Type: telegram.Supergroup, Title: "Team"})
		_, url := w.withRepository(sumRepo)
		w.with(map[string]string{"TELEGRAM_ALLOWED_USER_IDS": ""}).start()
		_, code, _ := strings.Cut(w.printed.String(), "?start=")
		w.says(ann, "/start "+strings.Fields(code)[0])
		w.seesText(ann, "You are the owner")
		w.with(map[string]string{"TELEGRAM_ALLOWED_USER_IDS": "42,77"}).restart()
		w.says(ann, "/clone "+url)
		w.seesText(ann, "Cloned")
		w.says(ann, "/model gpt-5-mini")
		w.seesText(ann, "gpt-5-mini answers from")
		w.ai.Enqueue(openai.Text("Priced.").WithUsage(1_000_000, 1_000_000))
		w.says(ann, "a question")
		w.seesText(ann, "Priced.")
		w.ai.Enqueue(openai.Text("Nobody knows the price.").WithUsage(9000, 1000))
		w.says(bob, "another one")
		w.seesText(bob, "Nobody knows the price.")
		w.restart()

		w.says(ann, "/cost week by person")
		w.seesText(ann, "Used by everyone, since", "telegram/42: 1 turn, 2.0M tokens · $2.25", "telegram/77: 1 turn, 10k tokens (no price data)", "Total: 2 turns")
		w.says(ann, "/cost by codebase")
		w.seesText(ann, "by codebase", "acme/web: 1 turn", "(none or deleted): 1 turn")
		w.says(ann, "/cost all conversation")
		w.seesText(ann, "since the beginning", "telegram/42: 1 turn", "telegram/77: 1 turn")
		w.says(bob, "/cost week by person")
		bobs := w.seesText(bob, "Used by you", "telegram/77", "Total: 1 turn, 10k tokens")
		w.says(bob, "/cost all by model")
		bobs += w.seesText(bob, "Used by you", "test-model: 1 turn")
		w.says(bob, "/cost")
		bobs += w.seesText(bob, "you, today: 1 turn, 10k tokens (no price data)")
		if strings.Contains(bobs, "gpt-5-mini:") || strings.Contains(bobs, "/42") || strings.Contains(bobs, "everybody") {
			t.Errorf("Bob reads what Ann used:\n%s", bobs)
		}
		in := w.tg.Person(ann).In(group)
		in.Says("/cost@acme_bot week by person")
		w.seesText(group, "private chat", "bot costs --by person")
		in.Says("/cost@acme_bot 7d by model")
		w.seesText(group, "gpt-5-mini: 1 turn")
		for wrong, want := range map[string]string{"by nobody": "cannot be grouped by", "soon": "is not a time", "week month": "one period", "9999-12-31": "in the future"} {
			w.says(bob, "/cost "+wrong)
			w.seesText(bob, "✖", want)
		}

		printed := w.operator("costs", func(env app.Env) error {
			return app.Costs(t.Context(), w.config(), env, app.CostQuery{By: "person", Since: "today"})
		})
		for _, part := range []string{"$2.250000", "telegram/42", "10000", "total", "no price"} {
			if !strings.Contains(printed, part) {
				t.Errorf("bot costs does not print %q:\n%s", part, printed)
			}
		}
		grouped := w.operator("costs", func(env app.Env) error {
			return app.Costs(t.Context(), w.config(), env, app.CostQuery{By: "repo", Since: "today"})
		})
		if header, _, _ := strings.Cut(grouped, "\n"); !strings.HasSuffix(header, "  repository") {
			t.Errorf("by repository:\n%s", grouped)
		}
		table := w.operator("costs", func(env app.Env) error {
			return app.Costs(t.Context(), w.config(), env, app.CostQuery{By: "model", Since: "all", CSV: true})
		})
		if want := "gpt-5-mini,,1,1000000,1000000,2250000,0\ntest-model,,1,9000,1000,0,10000\n"; !strings.HasSuffix(table, want) {
			t.Errorf("as CSV:\n%s", table)
		}
		if lines := w.operator("costs", func(env app.Env) error {
			return app.Costs(t.Context(), w.config(), env, app.CostQuery{By: "day", Since: "all", JSON: true})
		}); strings.Count(lines, "\n") != 1 || !strings.Contains(lines, fmt.Sprintf(`"cost_micros":%d,"unpriced_tokens":10000`, 2_250_000)) {
			t.Errorf("as JSON:\n%s", lines)
		}
	})
}
