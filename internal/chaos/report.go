package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/chaos/ledger"
)

// Report is what a run found.
type Report struct {
	Options  Options `json:"-"`
	Platform string
	Seed     uint64
	Replicas int
	Took     time.Duration
	Database string
	Kills    int
	Starts   int // of processes
	InDoubt  int // messages of the bot of which it cannot know whether they were sent; each may leave a stray
	Refused  int // requests that the model's API refused: none is allowed
	Odd      int // calls against the platform's rules of rates, as those after a kill can be
	Bytes    int64
	Verdict  ledger.Verdict
	Done     map[string]int    // how often each thing went wrong
	Skipped  map[string]string // what could not be tried, and why
	Soak     *Soak             `json:",omitempty"`

	// CrowdWork is what accepting a message of the crowd took, that is all work until the
	// last one was accepted; nil if the system does not tell.
	CrowdWork *Work `json:",omitempty"`

	Kept string `json:",omitempty"` // the folder with the data and the logs, if a promise was broken or the run failed
}

// Work is how long processors worked for the first process and for this one, in which
// the emulated platform and model are.
type Work struct{ Bot, Emulators time.Duration }

// Broken reports whether a promise was broken.
func (r Report) Broken() bool { return r.Verdict.Broken(r.InDoubt) || r.Refused > 0 }

// count notes that something went wrong.
func (r *run) count(what string) {
	r.noting.Lock()
	defer r.noting.Unlock()
	r.report.Done[what]++
}

// killed notes a kill at a moment.
func (r *run) killed(where moment) {
	r.count("kill: " + string(where))
	r.doubt(time.Now())
	r.noting.Lock()
	defer r.noting.Unlock()
	r.report.Kills++
	r.lastKill = time.Now()
	r.book.Die(r.lastKill)
}

// span is a time in which what was sent could not be put on record.
type span struct{ from, to time.Time }

// doubt notes such a time, which ends now.
func (r *run) doubt(from time.Time) {
	r.noting.Lock()
	defer r.noting.Unlock()
	r.doubts = append(r.doubts, span{from, time.Now()})
}

// seen notes what a message of the bot says, and unsure a call that may have sent one.
func (r *run) seen(text string, isNew bool) {
	if isNew {
		r.noting.Lock()
		r.sends = append(r.sends, time.Now())
		r.noting.Unlock()
	}
	r.moments.come(called)
	r.book.See(text, time.Now())
}

func (r *run) unsure() {
	r.noting.Lock()
	defer r.noting.Unlock()
	r.report.InDoubt++
}

// inDoubt counts the messages that were sent at most a second before such a time, or in
// it: so long may it take until the id of a placeholder is on record. The lock must be
// held.
func (r *run) inDoubt() (n int) {
	for _, at := range r.sends {
		if slices.ContainsFunc(r.doubts, func(s span) bool {
			return at.After(s.from.Add(-time.Second)) && at.Before(s.to.Add(300*time.Millisecond))
		}) {
			n++
		}
	}
	return n
}

// skip notes what cannot be tried here.
func (r *run) skip(what trouble, why string) {
	r.noting.Lock()
	defer r.noting.Unlock()
	r.report.Skipped[string(what)] = why
}

func (r *run) progress() {
	said, accepted, answered := r.book.Totals()
	r.noting.Lock()
	kills := r.report.Kills
	r.noting.Unlock()
	r.say("%d kills; %d messages said, %d accepted, %d answered", kills, said, accepted, answered)
}

// judge compares what was said with what is seen.
func (r *run) judge() {
	r.noting.Lock()
	defer r.noting.Unlock()
	r.report.Verdict = r.book.Judge(r.platform.shown, isStray)
	r.report.InDoubt += r.inDoubt()
	r.report.Refused = r.model.server.Stats().Refused
	r.report.Odd = r.platform.odd()
	r.report.Database, r.report.Bytes = r.db.name, r.db.size()
}

// describe says what is done, in the words of the command line.
func (o Options) describe() string {
	text := fmt.Sprintf("%s on %s, %d replicas, %g messages a second in %d chats", o.Platform, o.Database, o.Replicas, o.Rate, o.Chats)
	if len(o.With) > 0 {
		text += ", " + strings.Join(o.With, " ")
	}
	return text
}

// WriteJSON writes the report as JSON; durations are in nanoseconds.
func (r Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteTable writes the report for people.
func (r Report) WriteTable(w io.Writer) error {
	v := r.Verdict
	lines := []string{
		fmt.Sprintf("%s, %s, %d replicas, seed %d: %d kills in %s", r.Options.Platform, r.Database, r.Options.Replicas, r.Options.Seed, r.Kills, round(r.Took)), "",
	}
	row := func(name string, value any, note string) {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("  %-16s %8v  %s", name, value, note), " "))
	}
	row("said", v.Said, "")
	row("accepted", v.Accepted, fmt.Sprintf("after %s at the median, %s p95, %s at the most", round(v.Ack.P50), round(v.Ack.P95), round(v.Ack.Longest)))
	row("answered once", v.Once, fmt.Sprintf("after %s at the median, %s p95", round(v.Wait.P50), round(v.Wait.P95)))
	row("lost", v.Lost, "")
	row("twice", v.Twice, "")
	row("out of order", v.Disorder, "")
	row("garbled", v.Garbled, "")
	row("strays", v.Strays, fmt.Sprintf("placeholders that stay; %d messages were sent of which the bot could not know", r.InDoubt))
	row("notices", v.Notices, "messages of the bot that are no answers")
	row("longest wait", round(v.Wait.Longest), "")
	if v.Takeover.Longest > 0 {
		row("taken over", round(v.Takeover.P95), fmt.Sprintf("p95 from a kill to the answer to what waited then; %s at the median, %s at the most", round(v.Takeover.P50), round(v.Takeover.Longest)))
	}
	if v.Crowd > 0 {
		row("a crowd of", v.Crowd, fmt.Sprintf("accepted after %s at the median, %s at the most; answered after %s, %s",
			round(v.CrowdAck.P50), round(v.CrowdAck.Longest), round(v.CrowdWait.P50), round(v.CrowdWait.Longest)))
		if r.CrowdWork != nil {
			row("work for each", r.CrowdWork.Bot.Round(time.Microsecond), fmt.Sprintf("of processors until all were accepted; the emulators' %s", r.CrowdWork.Emulators.Round(time.Microsecond)))
		}
		row("others meanwhile", v.Crowded, fmt.Sprintf("answered after %s at the median, %s p95, %s at the most",
			round(v.OthersWaitMeanwhile.P50), round(v.OthersWaitMeanwhile.P95), round(v.OthersWaitMeanwhile.Longest)))
	}
	if r.Refused > 0 {
		row("refused", r.Refused, "requests that the model's API refuses")
	}
	if r.Odd > 0 {
		row("too fast", r.Odd, "calls before the time that a 429 named; a new process cannot know it")
	}
	lines = append(lines, "", "What went wrong:")
	for _, what := range slices.Sorted(maps.Keys(r.Done)) {
		lines = append(lines, fmt.Sprintf("  %6d  %s", r.Done[what], what))
	}
	for _, what := range slices.Sorted(maps.Keys(r.Skipped)) {
		lines = append(lines, fmt.Sprintf("  not tried: %s: %s", what, r.Skipped[what]))
	}
	if r.Soak != nil {
		lines = append(lines, r.Soak.lines()...)
	}
	for _, told := range v.Told {
		lines = append(lines, "  notice "+told)
	}
	for _, problem := range v.Problems {
		lines = append(lines, "BROKEN  "+problem)
	}
	switch {
	case r.Broken():
		lines = append(lines, "", "A promise was broken. The data and the logs are kept in "+r.Kept)
	default:
		lines = append(lines, "", "Every promise was kept.")
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

func round(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Second:
		return d.Round(time.Second)
	case d > time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
