package orchestrator_test

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"remote-agent/internal/chat"
	"remote-agent/internal/doctor"
	ot "remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/store"
)

// TestLeaseThatCannotBeRenewed has the database go away while a turn runs: its process
// gives up before anybody else may take over, changes nothing afterwards, and the turn
// goes on elsewhere.
func TestLeaseThatCannotBeRenewed(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		var ended atomic.Int64 // when the first request was given up
		begin := time.Now()
		w.Model.On("hello", ot.Given(func() { ended.Store(int64(time.Since(begin))) }, ot.Hold("I think ", ot.Say("I am late."))), ot.Say("In time."))
		first := w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Second)
		first.Fail(errUnavailable)
		second := w.Replica()
		w.Pass(time.Minute)
		if at := time.Duration(ended.Load()); at == 0 || at > 20*time.Second {
			t.Errorf("the turn was ended after %v, want less than the 20 s of its lease", at)
		}
		w.Chat.Want("✔ Answered after", "In time.")
		first.Fail(nil)
		w.Pass(time.Minute)
		w.Chat.Want("✔ Answered after", "In time.")
		if got := w.Runs(); got != "interrupted completed" {
			t.Errorf("the runs are %q", got)
		}
		if said := w.Said(); slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "late") }) {
			t.Errorf("the late answer is on record: %q", said)
		}
		second.Stop()
	})
}

// TestProcessThatWasTakenForDead ends its turns without a word: others work on them. What
// comes later is answered by it again.
func TestProcessThatWasTakenForDead(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		ended := false
		w.Model.On("hello", ot.Given(func() { ended = true }, ot.Hold("I think ", ot.Say("Never."))), ot.Say("At last."))
		p := w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Second)
		p.Engine.LeasesLost()
		w.Settle()
		if got := w.Runs() + " " + w.States("hello"); !ended || got != "running running" {
			t.Errorf("the request has ended: %v; run and entry are %s", ended, got)
		}
		w.Chat.Say("and me?", ot.In("elsewhere"))
		w.Settle()
		w.Chat.WantIn("elsewhere", "re: Ann: and me?")
		w.Pass(2 * time.Minute)
		w.Chat.Find("At last.")
	})
}

// TestDatabaseThatWasAwayForASecond fails a turn's end: its process takes the conversation
// up again as soon as the database answers, and not where somebody else has its lease.
func TestDatabaseThatWasAwayForASecond(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]bool{"Own": false, "TakenOver": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Model.On("hello", ot.Hold("I think ", ot.Say("Lost.")), ot.Say("Here."))
				p := w.Start()
				w.Chat.Say("hello")
				w.Pass(time.Second)
				p.Fail(errUnavailable)
				w.Model.Release()
				w.Pass(500 * time.Millisecond)
				if taken {
					steal(w, 20*time.Second)
				}
				w.Pass(time.Second)
				p.Fail(nil)
				w.Pass(3 * time.Second)
				if taken {
					if owner := w.Value(`SELECT lease_owner FROM remote_agent_conversations`); owner != "someone else" || len(w.Model.Requests()) != 1 {
						t.Errorf("the lease is %q's, and the model was asked %d times", owner, len(w.Model.Requests()))
					}
					return
				}
				w.Chat.Want("Here.")
				if got := w.Runs(); got != "interrupted completed" {
					t.Errorf("the runs are %q", got)
				}
			})
		})
	}
}

// TestLeaseThatIsRenewed is the other half: a turn may take many times as long as its
// lease, and nobody else begins it.
func TestLeaseThatIsRenewed(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello", ot.Later(5*time.Minute, ot.Say("At last.")))
		first := w.Start()
		w.Chat.Say("hello")
		second := w.Replica()
		w.Pass(6 * time.Minute)
		w.Chat.Want("✔ Worked for 5:00", "At last.")
		if n := len(w.Model.Requests()); n != 1 {
			t.Errorf("the model was asked %d times", n)
		}
		second.Stop()
		first.Stop()
	})
}

// TestLateProcessChangesNothing has a process go on after somebody else took over: the
// model has answered it, and the answer is nowhere.
func TestLateProcessChangesNothing(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello", ot.Hold("I think ", ot.Say("I am late.")), ot.Say("In time."))
		w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Second)
		steal(w, 10*time.Second)
		w.Model.Release() // before the next renewal tells
		w.Settle()
		w.Chat.Want("I think")
		w.Pass(30 * time.Second)
		w.Chat.Want("✔ Answered after", "In time.")
		if said := w.Said(); !slices.Equal(said, []string{"user|hello", "assistant|In time."}) {
			t.Errorf("on record is %q", said)
		}
	})
}

// TestStopOnAnotherReplica reaches the turn with the next renewal.
func TestStopOnAnotherReplica(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("hello", ot.Hold("I think ", ot.Say("Never.")))
		first := w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Second)
		second := w.Replica()
		w.Chat.Say("/stop")
		w.Pass(10 * time.Second)
		w.Chat.Find("⏹ Stopped after")
		if got := w.States("hello"); got != "stopped" {
			t.Errorf("the entry is %s", got)
		}
		second.Stop()
		first.Stop()
	})
}

// commandAnswer has a process die between the answer to a command being stored and it
// being sent.
func commandAnswer(w *ot.World) {
	w.T.Helper()
	p := w.Start()
	w.Chat.React = func(a ot.Asked) ot.Reaction {
		if strings.Contains(a.Text, "You are") || a.Text == "…" {
			p.Die()
		}
		return ot.Reaction{}
	}
	w.Chat.Say("/whoami")
	w.Settle()
	w.Chat.React = nil
	if !p.Dead() {
		w.T.Fatal("the process did not come to send the answer")
	}
	w.Chat.Want()
	if got := w.Value(`SELECT state FROM inbound_events WHERE lane = 'control'`); got != "done" {
		w.T.Fatalf("the command is %s, want done", got)
	}
}

func TestAnswerToACommandOfADeadProcess(t *testing.T) {
	t.Parallel()
	t.Run("TheNextOneAtOnce", func(t *testing.T) {
		t.Parallel()
		ot.Run(t, func(w *ot.World) {
			commandAnswer(w)
			w.Start()
			w.Pass(time.Second)
			w.Chat.Want("You are")
		})
	})
	t.Run("AnotherReplicaWhenItIsOverdue", func(t *testing.T) {
		t.Parallel()
		ot.Run(t, func(w *ot.World) {
			commandAnswer(w)
			w.Replica()
			w.Chat.Say("hello")
			w.Pass(20 * time.Second)
			w.Chat.Want("re: hello") // the process that gave the other one may be about to send it
			w.Pass(20 * time.Second)
			w.Chat.Want("re: hello", "You are")
		})
	})
}

// TestCommandOfADeadProcess has it die before the command ran.
func TestCommandOfADeadProcess(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		start  func(w *ot.World) *ot.Process
		within time.Duration
	}{
		"TheNextOne":     {func(w *ot.World) *ot.Process { return w.Start() }, time.Second}, // the command is nobody else's
		"AnotherReplica": {func(w *ot.World) *ot.Process { return w.Replica() }, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				p := w.Start()
				var once atomic.Bool
				p.After(func() {
					if once.CompareAndSwap(false, true) {
						p.Die()
					}
				})
				w.Chat.Say("/whoami")
				w.Settle()
				if got := w.Value(`SELECT state FROM inbound_events WHERE lane = 'control'`); got != "waiting" {
					t.Fatalf("the command is %s, want waiting", got)
				}
				tt.start(w)
				w.Pass(tt.within)
				w.Chat.Want("You are")
				if got := w.Value(`SELECT state FROM inbound_events WHERE lane = 'control'`); got != "done" {
					t.Errorf("the command is %s", got)
				}
			})
		})
	}
}

// TestSweepFindsWhatNobodyRangFor loses every wake-up: the message is answered with the
// next sweep.
func TestSweepFindsWhatNobodyRangFor(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		slots(w, 1)
		w.Model.On("busy", ot.Hold("", ot.Say("Done.")))
		w.Start()
		w.Chat.Say("busy", ot.In("elsewhere"))
		w.Chat.Say("hello")
		w.Settle()
		w.Process().Kill() // with the wake-up of the second message
		w.Model.On("busy", ot.Say("Done."))
		w.Start()
		w.Pass(10 * time.Second)
		w.Chat.Want("re: hello")
		w.Chat.WantIn("elsewhere", "Done.")
	})
}

// TestConversationThatIsDeletedMeanwhile rings for nothing.
func TestConversationThatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		p := w.Start()
		w.Chat.Say("hello")
		w.Pass(time.Second)
		err := p.Store.InTx(w.T.Context(), func(tx *store.Tx) error {
			c, err := tx.Conversations().FindConversation(w.T.Context(), room(ot.Room))
			if err != nil {
				return err
			}
			return tx.Conversations().DeleteConversation(w.T.Context(), c.ID)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Engine.Ring(w.T.Context(), "00000000-0000-0000-0000-000000000000"); err != nil {
			t.Errorf("ringing for a conversation that is not there: %v", err)
		}
		w.Chat.Say("hello again")
		w.Pass(time.Second)
		w.Chat.Want("re: hello", "re: hello again")
	})
}

// TestMessageWhoseCommitWasNotConfirmed has the answer to a commit be lost: the message is
// stored and its conversation claimed, but the process that did so does not know. It is
// answered long before that lease would have run out.
func TestMessageWhoseCommitWasNotConfirmed(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]func(w *ot.World, p *ot.Process){
		"Accepted": func(w *ot.World, p *ot.Process) {
			p.Lose()
			w.Chat.Again(w.Chat.Say("hello"))
		},
		"Rung": func(w *ot.World, p *ot.Process) {
			slots(w, 1)
			w.Model.On("busy", ot.Hold("", ot.Say("Done.")))
			p.Stop()
			p = w.Start()
			w.Chat.Say("busy", ot.In("elsewhere"))
			w.Chat.Say("hello")
			w.Settle()
			w.Model.Release()
			p.After(func() { // until the claim is the next one
				if w.Value(`SELECT count(*) FROM remote_agent_conversations WHERE lease_owner IS NOT NULL`) == "0" {
					p.After(nil)
					p.Lose()
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				say(w, w.Start())
				w.Pass(8 * time.Second)
				w.Chat.Want("re: hello")
			})
		})
	}
}

// rewriteWaiting has the database change beneath the program.
func rewriteWaiting(w *ot.World, set string) {
	w.T.Helper()
	execute(w, `UPDATE inbound_events SET `+set+` WHERE state = 'waiting'`)
}

// execute runs a statement on the database of the newest process.
func execute(w *ot.World, statement string) {
	w.T.Helper()
	err := w.Process().Store.InTx(w.T.Context(), func(tx *store.Tx) error {
		_, err := tx.Handle().(*sql.Tx).ExecContext(w.T.Context(), statement) //nolint:errcheck,forcetypeassert // SQLite's
		return err
	})
	if err != nil {
		w.T.Fatal(err)
	}
}

// TestDamagedMessageIsSetAside: its sender is asked for it again, owners are told once a day
// however many there are, and what was said behind it is answered.
func TestDamagedMessageIsSetAside(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("first", ot.Later(3*time.Second, ot.Say("One.")))
		w.Model.On("fourth", ot.Say("Four."))
		w.Start()
		w.Chat.Say("hello", private(ot.Olga)...)
		w.Pass(time.Minute)
		w.Chat.Say("first")
		w.Pass(time.Second)
		w.Chat.Say("second")
		w.Chat.Say("third")
		w.Pass(time.Second)
		rewriteWaiting(w, `data = '{"text":'`)
		w.Chat.Say("fourth")
		w.Pass(10 * time.Second)
		const asked = "damaged in the database"
		w.Chat.Want("One.", asked, asked, "Four.")
		if told := w.Chat.Texts("chat-olga"); len(told) != 2 || !strings.Contains(told[1], "Check the disk") {
			t.Errorf("the owner reads %q", told)
		}
		if got := w.Rows(`SELECT state || ' ' || COALESCE(error, '') FROM inbound_events WHERE conversation_id = (SELECT id FROM remote_agent_conversations WHERE platform_conversation_id = 'room') ORDER BY seq`); !slices.Equal(got, []string{
			"done ", "failed what is stored of it is damaged", "failed what is stored of it is damaged", "done ",
		}) {
			t.Errorf("the inbox has %q", got)
		}
	})
}

// TestOwnersAreToldOfDamageWithIt: a message is not set aside without the notice for owners,
// which nobody would make up for.
func TestOwnersAreToldOfDamageWithIt(t *testing.T) {
	t.Parallel()
	for _, lane := range []string{"turn", "control"} {
		t.Run(lane, func(t *testing.T) {
			t.Parallel()
			ot.Run(t, func(w *ot.World) {
				w.Model.On("first", ot.Later(3*time.Second, ot.Say("One.")))
				w.Start()
				w.Chat.Say("hello", private(ot.Olga)...)
				w.Pass(time.Minute)
				w.Chat.Say("first")
				w.Pass(time.Second)
				w.Chat.Say("second")
				w.Pass(time.Second)
				execute(w, `CREATE TRIGGER refuse BEFORE INSERT ON deliveries WHEN NEW.body LIKE '%Check the disk%' BEGIN SELECT RAISE(ABORT, 'not now'); END`)
				rewriteWaiting(w, `lane = '`+lane+`', data = '{"text":'`)
				w.Pass(time.Minute)
				execute(w, `DROP TRIGGER refuse`)
				w.Pass(10 * time.Minute)
				w.Chat.Want("One.", "damaged in the database")
				if told := w.Chat.Texts("chat-olga"); len(told) != 2 || !strings.Contains(told[1], "Check the disk") {
					t.Errorf("the owner reads %q", told)
				}
			})
		})
	}
}

// TestDamagedCommandIsSetAside as a message is.
func TestDamagedCommandIsSetAside(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("first", ot.Later(3*time.Second, ot.Say("One.")))
		w.Start()
		w.Chat.Say("first")
		w.Pass(time.Second)
		w.Chat.Say("second")
		w.Pass(time.Second)
		rewriteWaiting(w, `lane = 'control', data = '{"text":'`)
		w.Pass(time.Minute)
		w.Chat.Want("One.", "damaged in the database")
		if got := w.Value(`SELECT state || ' ' || error FROM inbound_events WHERE lane = 'control'`); got != "failed what is stored of it is damaged" {
			t.Errorf("it is on record as %q", got)
		}
	})
}

// TestEntryThatCannotBeReadIsTriedAtThePaceOfLeases has the row of a message that waits become
// unreadable in the database: it is tried again when the lease of the last try has run
// out, not at each sweep, and others are answered meanwhile.
func TestEntryThatCannotBeReadIsTriedAtThePaceOfLeases(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Model.On("first", ot.Later(3*time.Second, ot.Say("One.")))
		w.Model.On("second", ot.Say("Two."))
		w.Model.On("elsewhere", ot.Say("Three."))
		w.Start()
		w.Chat.Say("first")
		w.Pass(time.Second)
		w.Chat.Say("second")
		w.Pass(time.Second)
		rewriteWaiting(w, `attempts = 'many'`)
		w.Pass(10 * time.Second)
		w.Chat.Want("One.")
		epoch := func() int {
			n, _ := strconv.Atoi(w.Value(`SELECT lease_epoch FROM remote_agent_conversations LIMIT 1`))
			return n
		}
		before := epoch()
		w.Chat.Say("elsewhere", ot.In(team), ot.From(ot.Ann))
		w.Pass(time.Minute)
		if tries := epoch() - before; tries < 2 || tries > 4 {
			t.Errorf("it was tried %d times in a minute, want once for each lease of 20 s", tries)
		}
		w.Chat.WantIn(team, "Three.")
		rewriteWaiting(w, `attempts = 0`)
		w.Pass(30 * time.Second)
		w.Chat.Want("One.", "Two.")
	})
}

// TestLeaseCountsFromWhenItsRenewalWasAskedFor: the database answers a renewal late, and then
// not at all. The turn is given up before the lease that was renewed runs out.
func TestLeaseCountsFromWhenItsRenewalWasAskedFor(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		var ended atomic.Int64
		begin := time.Now()
		w.Model.On("hello", ot.Given(func() { ended.Store(int64(time.Since(begin))) }, ot.Hold("I think ", ot.Say("I am late."))))
		p := w.Start()
		w.Chat.Say("hello")
		w.Pass(4 * time.Second)
		p.After(func() { // behind the renewal after 5 s
			p.After(nil)
			p.Fail(errUnavailable)
			time.Sleep(14 * time.Second)
		})
		w.Pass(time.Minute)
		if at := time.Duration(ended.Load()); at == 0 || at > 25*time.Second {
			t.Errorf("the turn was ended after %v, want no more than the 20 s of its lease after 5 s", at)
		}
	})
}

// TestRepeatedEventTakesNoSlot: it came before this process was there.
func TestRepeatedEventTakesNoSlot(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		slots(w, 1)
		w.Start()
		said := w.Chat.Say("hello")
		w.Pass(time.Second)
		w.Restart()
		w.Chat.Again(said)
		w.Chat.Say("hello again")
		w.Pass(time.Second)
		w.Chat.Want("re: hello", "re: hello again")
	})
}

// TestUnconfirmedMessageTakesNoSlot: the transaction that took the last slot may have come
// to nothing.
func TestUnconfirmedMessageTakesNoSlot(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		slots(w, 1)
		p := w.Start()
		p.Lose()
		w.Chat.Again(w.Chat.Say("hello"))
		w.Pass(10 * time.Second)
		w.Chat.Want("re: hello")
	})
}

// TestCommandIsAnsweredOnce: it takes so long that another replica takes its process for
// dead. Both run it, and one answers.
func TestCommandIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		w.Commands = func(c *chat.Config, _ *ot.Process) {
			c.Doctor = func(ctx context.Context) doctor.Report {
				<-ctx.Done()
				return doctor.Report{}
			}
		}
		first := w.Start()
		second := w.Replica()
		w.Chat.DeliverTo(first)
		w.Chat.Say("/doctor", ot.From(ot.Olga))
		w.Pass(time.Minute)
		w.Chat.Want("**Checks:**")
		second.Stop()
		first.Stop()
	})
}

// TestWhatWaitsAtAStartIsRungFor: what there is no slot for then begins when one is free, and
// waits for no sweep.
func TestWhatWaitsAtAStartIsRungFor(t *testing.T) {
	t.Parallel()
	ot.Run(t, func(w *ot.World) {
		slots(w, 1)
		w.Model.On("hello", ot.Hold("", ot.Say("Never.")), ot.Later(2600*time.Millisecond, ot.Say("Hello.")))
		w.Start()
		for _, in := range []string{"one", "two", "three"} {
			w.Chat.Say("hello", ot.In(in))
		}
		w.Settle()
		w.Process().Kill()
		w.Start()
		w.Pass(4500 * time.Millisecond)
		if n := len(w.Model.Requests()) - 1; n < 2 {
			t.Errorf("%d turns have begun before the first sweep", n)
		}
	})
}
