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
	lines := []string{
		fmt.Sprintf("%s, %s, %d replicas, seed %d: %d kills in %s", r.Options.Platform, r.Database, r.Options.Replicas, r.Options.Seed, r.Kills, rounded(r.Took)), "",
	}
	for _, f := range r.figures() {
		if !f.none {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("  %-16s %8v  %s", f.name, f.value, f.note), " "))
		}
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
	for _, told := range r.Verdict.Told {
		lines = append(lines, "  notice "+told)
	}
	for _, problem := range r.Verdict.Problems {
		lines = append(lines, "BROKEN  "+problem)
	}
	last := "Every promise was kept."
	if r.Broken() {
		last = "A promise was broken. The data and the logs are kept in " + r.Kept
	}
	_, err := io.WriteString(w, strings.Join(append(lines, "", last), "\n")+"\n")
	return err
}

// figure is a line of the table.
type figure struct {
	name  string
	value any
	note  string
	none  bool // there is nothing to tell
}

func (r Report) figures() []figure {
	v := r.Verdict
	var work Work
	if r.CrowdWork != nil {
		work = *r.CrowdWork
	}
	return []figure{
		{name: "said", value: v.Said},
		{name: "accepted", value: v.Accepted, note: "after " + inAll(v.Ack)},
		{name: "answered once", value: v.Once, note: fmt.Sprintf("after %s at the median, %s p95", rounded(v.Wait.P50), rounded(v.Wait.P95))},
		{name: "lost", value: v.Lost},
		{name: "twice", value: v.Twice},
		{name: "out of order", value: v.Disorder},
		{name: "garbled", value: v.Garbled},
		{name: "strays", value: v.Strays, note: fmt.Sprintf("placeholders that stay; %d messages were sent of which the bot could not know", r.InDoubt)},
		{name: "notices", value: v.Notices, note: "messages of the bot that are no answers"},
		{name: "longest wait", value: rounded(v.Wait.Longest)},
		{
			name: "taken over", value: rounded(v.Takeover.P95), none: v.Takeover.Longest == 0,
			note: "p95 from a kill to the answer to what waited then; " + atMost(v.Takeover),
		},
		{
			name: "a crowd of", value: v.Crowd, none: v.Crowd == 0,
			note: fmt.Sprintf("accepted after %s; answered after %s, %s", atMost(v.CrowdAck), rounded(v.CrowdWait.P50), rounded(v.CrowdWait.Longest)),
		},
		{
			name: "work for each", value: work.Bot.Round(time.Microsecond), none: v.Crowd == 0 || r.CrowdWork == nil,
			note: fmt.Sprintf("of processors until all were accepted; the emulators' %s", work.Emulators.Round(time.Microsecond)),
		},
		{name: "others meanwhile", value: v.Crowded, none: v.Crowd == 0, note: "answered after " + inAll(v.OthersWaitMeanwhile)},
		{name: "refused", value: r.Refused, none: r.Refused == 0, note: "requests that the model's API refuses"},
		{name: "too fast", value: r.Odd, none: r.Odd == 0, note: "calls before the time that a 429 named; a new process cannot know it"},
	}
}

func inAll(t ledger.Times) string {
	return fmt.Sprintf("%s at the median, %s p95, %s at the most", rounded(t.P50), rounded(t.P95), rounded(t.Longest))
}

func atMost(t ledger.Times) string {
	return fmt.Sprintf("%s at the median, %s at the most", rounded(t.P50), rounded(t.Longest))
}

// rounded is a time as people read it.
type rounded time.Duration

func (r rounded) String() string {
	d, unit := time.Duration(r), time.Millisecond
	switch {
	case d > 10*time.Second:
		unit = time.Second
	case d > time.Second:
		unit = 100 * time.Millisecond
	}
	return d.Round(unit).String()
}
