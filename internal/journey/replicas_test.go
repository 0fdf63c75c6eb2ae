package journey_test

import (
	"fmt"
	"strings"
	"testing"

	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/fault"
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

// TestADataDirectoryHasOneReplica starts a second bot on the data directory of a first one:
// it would remove the temporary folders of the programs that run there.
func TestADataDirectoryHasOneReplica(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.PostgresURL(t)).start()
	second := w.replica()
	second.env["DATA_DIR"] = w.env["DATA_DIR"]
	done := make(chan error, 1)
	select {
	case info := <-second.run(second.ctx(), done):
		t.Fatalf("the second one runs at %s", info.Addr)
	case err := <-done:
		if !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Public(err), "works on the data directory") {
			t.Errorf("the second one ended with %v", err)
		}
	}
	w.says(ann, "still there?")
	w.seesText(ann, "echo: still there?")
	w.restart() // which has the folder again
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
