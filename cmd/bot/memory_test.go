package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // to write rows beside the program
)

// The status draws what was nearly the same around the thresholds.
func TestMemoryStatusDrawsNearMisses(t *testing.T) {
	dir, err := filepath.Abs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"DATA_DIR=" + dir, "PATH=" + os.Getenv("PATH")}
	if r := bot(t, environ, "migrate", "up"); r.code != exitOK {
		t.Fatalf("migrate: %+v", r)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "bot.db"))
	if err != nil {
		t.Fatal(err)
	}
	rows := []string{`INSERT INTO memory_people (user_id) VALUES ('test/ann')`}
	for i, near := range []int{500, 749, 750, 830, 849, 849, 850, 949, 950, 1000} { // the first two and last two are not near
		rows = append(rows, fmt.Sprintf(`INSERT INTO semantic_memories (user_id, run_id, fact, seq, content_hash, nearness)
			VALUES ('test/ann', 'r', 'x', %d, '%d', %d)`, i, i, near))
	}
	rows = append(rows, `UPDATE semantic_memories SET embedding_model = '!small' WHERE seq < 3`)
	for _, row := range rows {
		if _, err := db.ExecContext(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	r := bot(t, environ, "memory", "status")
	for _, want := range []string{
		"4 facts just below 0.85, kept apart; 2 just above",
		"\n            0.75      1 " + strings.Repeat("#", 14) + "\n            0.77      0 \n",
		"\n            0.83      3 " + strings.Repeat("#", 40) + "\n          > 0.85      1 ",
		"\n            0.93      1 ##############\n",
		"0 episodes just below 0.95",
		"3 not, because small refused them: found by keyword",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
}
