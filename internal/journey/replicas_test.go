package journey_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/store/storetest"
)

// TestTwoReplicasShareOneDatabase runs two bots on one PostgreSQL database. One
// of them polls; when it stops, the other takes over, and nothing is answered
// twice.
func TestTwoReplicasShareOneDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.PostgresURL(t)).start()
	second := w.replica().start()
	for i := range 10 {
		w.says(ann, fmt.Sprintf("question %d", i))
	}
	w.seesText(ann, "echo: question 9 [19 messages]")
	if n := w.tg.Count("getUpdates"); n == 0 {
		t.Error("nobody polls")
	}
	w.shutdown() // gives its leases back
	w.says(ann, "who answers now?")
	w.seesText(ann, "echo: who answers now? [21 messages]")
	w.start()
	second.shutdown()
	w.says(ann, "and now?")
	w.seesText(ann, "echo: and now? [23 messages]")
	if texts := w.posted(ann); len(texts) != 12 {
		t.Errorf("12 questions have %d messages: %q", len(texts), texts)
	}
	for _, c := range w.tg.Calls("getUpdates") {
		if c.Status == 409 {
			t.Error("two replicas polled at once")
		}
	}
}

// TestReplicasInOneDataDirectory starts a second bot on the data directory of a first one: it
// works, and leaves alone the temporary folders of the programs that run there. Those that a dead
// one left go with the next start.
func TestReplicasInOneDataDirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.PostgresURL(t)).start()
	private := filepath.Join(w.env["DATA_DIR"], "run", "run-1")
	if err := os.MkdirAll(private, 0o700); err != nil {
		t.Fatal(err)
	}
	second := w.replica()
	second.env["DATA_DIR"] = w.env["DATA_DIR"]
	second.start()
	w.says(ann, "still there?")
	w.seesText(ann, "echo: still there?")
	if _, err := os.Stat(private); err != nil {
		t.Errorf("the second one removed what is not its own: %v", err)
	}
	second.stop()
	w.restart()
	if _, err := os.Stat(private); !os.IsNotExist(err) {
		t.Errorf("what a dead one left stays: %v", err)
	}
}

// TestReplicasBehindATransactionPooler runs two bots over a pooler that gives each
// transaction another session of the server. It is found and nothing else changes.
func TestReplicasBehindATransactionPooler(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.TransactionPooler(t, storetest.PostgresURL(t))).start()
	second := w.replica().start()
	for i := range 5 {
		w.says(ann, fmt.Sprintf("question %d", i))
		w.says(bob, fmt.Sprintf("question %d", i))
	}
	w.seesText(ann, "echo: question 4 [9 messages]")
	w.seesText(bob, "echo: question 4 [9 messages]")
	w.shutdown()
	w.says(ann, "who answers now?")
	w.seesText(ann, "echo: who answers now? [11 messages]")
	second.shutdown()
}

// TestStopReachesAnotherReplica stops a turn through a replica that does not run
// it.
func TestStopReachesAnotherReplica(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.PostgresURL(t))
	stuck := w.hang()
	w.with(map[string]string{"SHUTDOWN_GRACE": "20s"}).start()
	w.says(ann, "a long one")
	w.seesText(ann, stuck)
	second := w.replica()
	w.stop() // the first gives up its poll, and lets its turn run on
	second.start()
	w.says(ann, "/stop")
	w.seesText(ann, stuck, "Stopped after")
	if err := w.tg.Wait(w.ctx(), func(l telegram.Ledger) bool { return len(l.Chat(ann).FromBot()) == 2 }); err != nil {
		t.Errorf("saw %q", w.tg.ChatView(ann).BotTexts())
	}
	second.shutdown()
}
