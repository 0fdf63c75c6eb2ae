package chat

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/doctor"
	"remote-agent/internal/fault"
	"remote-agent/internal/redact"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store/storetest"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	h, err := New(Config{Storage: storetest.SQLite(t)(t), Log: storetest.Log(t), Doctor: func(context.Context) doctor.Report {
		return doctor.Run(t.Context(), []doctor.Check{{Area: "models", Run: func(context.Context) []doctor.Finding {
			return []doctor.Finding{
				doctor.Found("disk", doctor.OK, "9 GB free", ""),
				doctor.Found("openai", doctor.Fail, "the key sk-proj-"+strings.Repeat("a1B2", 12)+" was *rejected*", "set OPENAI_API_KEY"),
			}
		}}}, false, strings.TrimSpace)
	}})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := h.Find("doctor")
	for text, want := range map[string][2]string{ // what is there, and what is not
		"/doctor":      {"1 ok, 1 failed\n\n- ✖ models, openai: the key ", "disk"},
		"/doctor all":  {"- ✔ models, disk: 9 GB free", "lists every check"},
		"/doctor ALL":  {`was \*rejected\*` + "  \n  Fix: set OPENAI\\_API\\_KEY", "a1B2a1B2"},
		"/doctor what": {"`/doctor all` every check", "openai"},
	} {
		reply, err := c.Run(t.Context(), asked(text, sessions.Owner))
		if got := reply.Text + fault.Public(err); !strings.Contains(got, want[0]) || strings.Contains(got, want[1]) {
			t.Errorf("%s answers %q", text, got)
		}
	}
	for role, private := range map[sessions.Role]bool{sessions.Owner: false, sessions.User: true} {
		r := asked("/doctor", role)
		r.Entry.In.Private = private
		if reply, err := c.Run(t.Context(), r); !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s, private %t: %q, %v", role, private, reply.Text, err)
		}
	}
}

// The command answers in its time, whatever a check waits for, and says what is missing.
func TestDoctorDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := doctor.Check{Area: "database", Run: func(ctx context.Context) []doctor.Finding {
			<-ctx.Done()
			return nil
		}}
		ov := &overview{redact: redact.New(), doctor: func(ctx context.Context) doctor.Report {
			return doctor.Run(ctx, []doctor.Check{hangs}, false, strings.TrimSpace)
		}}
		begin := time.Now()
		reply, err := ov.runDoctor(t.Context(), asked("/doctor", sessions.Owner))
		if took := time.Since(begin); took != doctorPatience {
			t.Errorf("it took %s", took)
		}
		if err != nil || !strings.Contains(reply.Text, "database, stopped: not finished in time") || !strings.Contains(reply.Text, "waits longer") {
			t.Errorf("%q, %v", reply.Text, err)
		}
	})
}
