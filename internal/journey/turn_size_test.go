package journey_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/app"
	"remote-agent/internal/emulator/openai"
)

// How many bytes of the database file a plain turn may take: for as long as
// RETENTION_RAW says, and afterwards.
const (
	maxTurnStored = 2_250
	maxTurnKept   = 1_450
)

// ages makes all that was said 31 days older, while the bot is stopped, and removes
// what is past its retention by default.
func (w *world) ages() string {
	w.t.Helper()
	for _, c := range []string{"inbound_events SET accepted_ms = accepted_ms", "deliveries SET created_ms = created_ms"} {
		w.change(`UPDATE ` + c + ` - 2678400000`)
	}
	return w.care(func(ctx context.Context, env app.Env) error { return app.Retention(ctx, w.config(), env, false) })
}

// echo answers with the last word of what was said.
func (w *world) echo() {
	w.ai.Script(func(r openai.Request) openai.Response {
		text := r.LastUserText()
		return openai.Text("answered" + text[strings.LastIndexByte(text, ' '):])
	})
}

// TestWhatATurnStoresOnSQLite counts the pages of the file that are in use, so that
// what is left empty in them and all indexes are in it.
func TestWhatATurnStoresOnSQLite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").migrated()
	w.echo()
	w.start()
	const turns, first = 100, 10 // the first ones fill what was empty
	size := func() int {
		n, err := strconv.Atoi(w.rows(`SELECT (p.page_count - f.freelist_count) * s.page_size
			FROM pragma_page_count p, pragma_freelist_count f, pragma_page_size s`)[0])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := 0
	for i := range first + turns {
		if i == first {
			before = size()
		}
		w.says(ann, fmt.Sprintf("this is number %d", i))
		w.seesText(ann, fmt.Sprintf("answered %d", i))
	}
	w.settles()
	stored := (size() - before) / turns
	w.shutdown()
	w.ages()
	kept := (size() - before) / turns
	t.Logf("a plain turn stores %d bytes, of which %d are kept", stored, kept)
	if stored > maxTurnStored || kept > maxTurnKept || kept < 500 || kept >= stored {
		t.Errorf("a plain turn stores %d bytes, of which %d are kept; at most %d and %d are allowed", stored, kept, maxTurnStored, maxTurnKept)
	}
}

func TestAfterAMonthTheLastTurnCanBeRunAgain(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.echo()
		w.start()
		for i := range 3 {
			w.says(ann, fmt.Sprintf("this is number %d", i))
			w.seesText(ann, fmt.Sprintf("answered %d", i))
		}
		w.settles()
		w.shutdown()
		if printed := w.ages(); !strings.Contains(printed, "removed 3 bodies of events, 2 deliveries, 2 checkpoints") {
			t.Errorf("bot retention: %s", printed)
		}
		left := w.rows(`SELECT (SELECT count(*) FROM inbound_events), (SELECT count(*) FROM inbound_events WHERE raw IS NOT NULL),
			(SELECT count(*) FROM inbound_events WHERE data IS NOT NULL), (SELECT count(*) FROM agent_messages)`)
		if diff := cmp.Diff([]string{"3 | 0 | 1 | 6"}, left); diff != "" {
			t.Errorf("events, bodies, requests, messages (-want +got):\n%s", diff)
		}
		w.start()
		asked := len(w.ai.Requests())
		w.says(ann, "/retry once-more")
		w.seesText(ann, "once-more")
		if all := w.ai.Requests(); len(all) != asked+1 || !strings.Contains(all[asked].LastUserText(), "this is number 2") {
			t.Errorf("the model was asked %d times more, not with the last request", len(all)-asked)
		}
		w.says(ann, "/undo")
		w.seesText(ann, "Undid the last turn")
	})
}
