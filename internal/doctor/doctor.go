// Package doctor runs checks of an installation and reports what they found. A check
// proves something or says why it could not; nothing is assumed.
package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"remote-agent/internal/fault"
)

// Status is how a check ended.
type Status string

// The statuses, from good to bad. Skip is neither: nothing was proven.
const (
	OK   Status = "ok"
	Skip Status = "skip"
	Warn Status = "warn" // it works, and something should be changed
	Fail Status = "fail"
)

// Finding is what one check found. It holds no secret.
type Finding struct {
	Area   string `json:"area"` // such as "telegram"
	Check  string `json:"check"`
	Status Status `json:"status"`
	Detail string `json:"detail"`        // what was proven, what is wrong, or why nothing was tried
	Fix    string `json:"fix,omitempty"` // one command or link, of Warn and Fail

	Late   bool `json:"-"` // the time for all checks was over before this one ended
	Passes bool `json:"-"` // the trouble may pass by itself: a service did not answer, or not now
}

// Found makes a finding without its area.
func Found(check string, status Status, detail, fix string) Finding {
	return Finding{Check: check, Status: status, Detail: detail, Fix: fix}
}

// Failed makes a finding of an error, with its public text.
func Failed(check string, err error, fix string) Finding {
	f := Found(check, Fail, fault.Public(err), fix)
	f.Passes = !refused(err)
	return f
}

// refused reports whether a service refused a question for good.
func refused(err error) bool {
	return slices.ContainsFunc([]fault.Kind{fault.Unauthorized, fault.Unsupported, fault.Invalid, fault.Forbidden, fault.NotFound}, func(k fault.Kind) bool { return fault.Is(err, k) })
}

// Unanswered makes a finding of a question that a service did not answer: a failure if
// it refused it for good, and otherwise trouble that may pass.
func Unanswered(check string, err error, fix string) Finding {
	if refused(err) {
		return Failed(check, err, fix)
	}
	return Found(check, Warn, fault.Public(err), "try again: bot doctor")
}

// Check looks at one thing, which may lead to several findings. Run is called with a
// context that ends after Patience. Online checks use the network.
type Check struct {
	Area   string
	Online bool
	Run    func(ctx context.Context) []Finding
}

// Patience is how long one check may take.
const Patience = 30 * time.Second

// Report is what all checks found, in the order of the checks.
type Report struct {
	Findings []Finding `json:"findings"`
	Failed   int       `json:"failed"`
	Warnings int       `json:"warnings"`
	OK       int       `json:"ok"`
	Skipped  int       `json:"skipped"`
}

// Run runs the checks, all at once. Offline, those that need the network are skipped. What
// has not ended when ctx does is skipped, too. clean takes secrets out of every text.
func Run(ctx context.Context, checks []Check, offline bool, clean func(string) string) Report {
	found := make([][]Finding, len(checks))
	var group sync.WaitGroup
	for i, c := range checks {
		if offline && c.Online {
			found[i] = []Finding{Found("network", Skip, "skipped because of --offline", "")}
			continue
		}
		group.Go(func() {
			once, cancel := context.WithTimeout(ctx, Patience)
			defer cancel()
			found[i] = c.Run(once)
			if ctx.Err() != nil { // what it found says no more than that it was stopped
				found[i] = []Finding{{Check: "stopped", Status: Skip, Detail: "not finished in time", Late: true}}
			}
		})
	}
	group.Wait()
	var r Report
	for i, list := range found {
		for _, f := range list {
			f.Area, f.Detail, f.Fix = checks[i].Area, clean(f.Detail), clean(f.Fix)
			r.add(f)
		}
	}
	return r
}

func (r *Report) add(f Finding) {
	r.Findings = append(r.Findings, f)
	switch f.Status {
	case OK:
		r.OK++
	case Warn:
		r.Warnings++
	case Fail:
		r.Failed++
	default:
		r.Skipped++
	}
}

// WriteJSON writes the report as one JSON object.
func (r Report) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

var signs = map[Status]string{OK: "✔", Skip: "-", Warn: "!", Fail: "✖"}

// Write writes the report for a person: a line a finding, what would fix it below it,
// and a sum.
func (r Report) Write(w io.Writer) error {
	if err := r.WriteFindings(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.Sum())
	return err
}

// WriteFindings does so without the sum.
func (r Report) WriteFindings(w io.Writer) error {
	var b strings.Builder
	last := ""
	for _, f := range r.Findings {
		area := f.Area
		if area == last {
			area = ""
		}
		last = f.Area
		fmt.Fprintf(&b, "%-9s %s %s: %s\n", area, signs[f.Status], f.Check, f.Detail)
		if f.Fix != "" {
			fmt.Fprintf(&b, "%-9s   fix: %s\n", "", f.Fix)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Sum counts the findings in words.
func (r Report) Sum() string {
	parts := []string{fmt.Sprintf("%d ok", r.OK)}
	for _, p := range []struct {
		n    int
		word string
	}{{r.Skipped, "skipped"}, {r.Warnings, "warnings"}, {r.Failed, "failed"}} {
		if p.n > 0 {
			word := p.word
			if p.n == 1 {
				word = cmp.Or(map[string]string{"warnings": "warning"}[word], word)
			}
			parts = append(parts, fmt.Sprintf("%d %s", p.n, word))
		}
	}
	return strings.Join(parts, ", ")
}
