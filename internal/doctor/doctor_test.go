package doctor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/doctor"
	"remote-agent/internal/fault"
)

func finds(list ...doctor.Finding) func(context.Context) []doctor.Finding {
	return func(context.Context) []doctor.Finding { return list }
}

func TestReport(t *testing.T) {
	t.Parallel()
	checks := []doctor.Check{
		{Area: "a", Run: finds(doctor.Found("one", doctor.OK, "fine", ""), doctor.Found("two", doctor.Warn, "so so", "do this"))},
		{Area: "b", Online: true, Run: finds(doctor.Failed("three", fault.New(fault.Invalid, "the key sk-secret is bad"), "change it"))},
		{Area: "b", Run: finds(doctor.Found("four", doctor.Skip, "not here", ""))},
	}
	hide := func(s string) string { return strings.ReplaceAll(s, "sk-secret", "[redacted]") }
	r := doctor.Run(t.Context(), checks, false, hide)
	var text, object bytes.Buffer
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	want := "a         ✔ one: fine\n" +
		"          ! two: so so\n" +
		"            fix: do this\n" +
		"b         ✖ three: the key [redacted] is bad\n" +
		"            fix: change it\n" +
		"          - four: not here\n" +
		"\n1 ok, 1 skipped, 1 warning, 1 failed\n"
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
	var again doctor.Report
	if err := r.WriteJSON(&object); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(object.Bytes(), &again); err != nil || !cmp.Equal(r, again) {
		t.Errorf("%v: %s", err, cmp.Diff(r, again))
	}
	offline := doctor.Run(t.Context(), checks, true, hide)
	if offline.Failed != 0 || offline.Skipped != 2 {
		t.Errorf("offline: %+v", offline)
	}
}

// A check that hangs ends with its context, and holds up no other one.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		hangs := doctor.Check{Area: "a", Run: func(ctx context.Context) []doctor.Finding {
			<-ctx.Done()
			return []doctor.Finding{doctor.Failed("hangs", ctx.Err(), "")}
		}}
		r := doctor.Run(t.Context(), []doctor.Check{hangs, hangs, hangs}, false, strings.TrimSpace)
		if took := time.Since(begin); took != doctor.Patience || r.Failed != 3 {
			t.Errorf("after %s: %+v", took, r)
		}
	})
}

// What has not ended with the time for all checks is left out, and no failure; what ended
// before is there.
func TestTimeForAllChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		slow := doctor.Check{Area: "slow", Run: func(ctx context.Context) []doctor.Finding {
			<-ctx.Done()
			return []doctor.Finding{doctor.Failed("hangs", ctx.Err(), "")}
		}}
		quick := doctor.Check{Area: "quick", Run: finds(doctor.Found("one", doctor.Warn, "so so", "do this"))}
		begin := time.Now()
		r := doctor.Run(ctx, []doctor.Check{slow, quick}, false, strings.TrimSpace)
		if took := time.Since(begin); took != time.Second || r.Failed != 0 || r.Skipped != 1 || r.Warnings != 1 || !r.Findings[0].Late {
			t.Errorf("after %s: %+v", took, r)
		}
	})
}
