package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is what a run found. Times of the processor and sizes of memory are
// zero where the system does not tell them. Durations are nanoseconds in JSON.
type Report struct {
	Machine    Machine    `json:"machine"`
	Setup      Setup      `json:"setup"`
	Start      Start      `json:"start"`
	OneAtATime Latency    `json:"one_at_a_time"`
	AtOnce     Throughput `json:"at_once"`
	Memory     Memory     `json:"memory"`
	Histories  []History  `json:"histories"`
}

// Machine is where it ran.
type Machine struct {
	OS              string  `json:"os"`
	Arch            string  `json:"arch"`
	Cores           int     `json:"cores"`
	Processor       string  `json:"processor,omitempty"`
	Go              string  `json:"go"`
	FsyncsPerSecond float64 `json:"fsyncs_per_second"` // durable appends of 4 KiB
}

// Setup is how it ran.
type Setup struct {
	Database string `json:"database"`
	Turns    int    `json:"turns"`
	Chats    int    `json:"chats"`
	Samples  int    `json:"samples"`
}

// Start is the time from the start of the process to the first getUpdates.
type Start struct {
	Empty time.Duration `json:"empty_ns"` // on an empty database, which gets its schema
	Again time.Duration `json:"again_ns"` // on one that is there, middle of three
}

// Latency is what the program adds to turns that come one at a time.
type Latency struct {
	Samples    int           `json:"samples"`
	InP50      time.Duration `json:"in_p50_ns"` // message delivered to the poll -> request at the model
	InP95      time.Duration `json:"in_p95_ns"`
	OutP50     time.Duration `json:"out_p50_ns"` // model's last text sent -> complete answer visible
	OutP95     time.Duration `json:"out_p95_ns"`
	AddedP50   time.Duration `json:"added_p50_ns"` // both together, of the same turn
	AddedP95   time.Duration `json:"added_p95_ns"`
	WholeP50   time.Duration `json:"whole_p50_ns"` // person sends -> complete answer visible
	WholeP95   time.Duration `json:"whole_p95_ns"`
	CPUPerTurn time.Duration `json:"cpu_per_turn_ns"`
}

// Throughput is what the program does when many chats write at once.
type Throughput struct {
	Turns          int           `json:"turns"`
	Seconds        float64       `json:"seconds"`
	TurnsPerSecond float64       `json:"turns_per_second"`
	P50            time.Duration `json:"p50_ns"` // person sends -> complete answer visible
	P95            time.Duration `json:"p95_ns"`
	CPUPerTurn     time.Duration `json:"cpu_per_turn_ns"`
	CallsPerTurn   float64       `json:"calls_per_turn"` // of the bot to Telegram, without polls
}

// Memory is resident memory in bytes.
type Memory struct {
	Idle       int64 `json:"idle"`         // after the start
	PeakAtOnce int64 `json:"peak_at_once"` // until all chats had been answered
	Peak       int64 `json:"peak"`         // of the whole run
}

// History is Latency in chats with this many earlier turns.
type History struct {
	Turns   int     `json:"turns"`
	Latency Latency `json:"latency"`
}

func latencyOf(all []stamps, cpu processTime) Latency {
	var in, out, added, whole []time.Duration
	for _, s := range all {
		i, o := s.requested.Sub(s.delivered), s.shown.Sub(s.replied)
		in, out, added, whole = append(in, i), append(out, o), append(added, i+o), append(whole, s.shown.Sub(s.sent))
	}
	return Latency{
		Samples: len(all),
		InP50:   percentile(in, 0.5), InP95: percentile(in, 0.95),
		OutP50: percentile(out, 0.5), OutP95: percentile(out, 0.95),
		AddedP50: percentile(added, 0.5), AddedP95: percentile(added, 0.95),
		WholeP50: percentile(whole, 0.5), WholeP95: percentile(whole, 0.95),
		CPUPerTurn: cpu.perTurn(len(all)),
	}
}

// percentile returns the smallest value that at least the share p of all values
// does not exceed, or zero of none.
func percentile(values []time.Duration, p float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := int(p * float64(len(sorted)))
	if float64(n) == p*float64(len(sorted)) {
		n--
	}
	return sorted[min(max(n, 0), len(sorted)-1)]
}

// WriteJSON writes the report as one JSON object.
func (r Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteTable writes the report for people, with the aims.
func (r Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, "machine   %d cores, %s/%s, %s", m.Cores, m.OS, m.Arch, m.Go)
	if m.Processor != "" {
		fmt.Fprintf(&b, ", %s", m.Processor)
	}
	fmt.Fprintf(&b, "\ndisk      %.0f durable appends of 4 KiB per second (%.2f ms each)\n", m.FsyncsPerSecond, 1000/max(m.FsyncsPerSecond, 0.001))
	fmt.Fprintf(&b, "setup     %s; emulated Telegram and model without delay on the same machine; limits off\n\n", r.Setup.Database)

	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { _, _ = fmt.Fprintln(t, strings.Join(cells, "\t")) } // a strings.Builder takes everything
	row("figure", "p50", "p95", "aim")
	row("start to the first poll", ms(r.Start.Again), "", "< 300 ms")
	row("start on an empty database", ms(r.Start.Empty), "", "< 300 ms")
	one := r.OneAtATime
	row("one at a time: message in to model request", ms(one.InP50), ms(one.InP95), "")
	row("one at a time: model done to final text", ms(one.OutP50), ms(one.OutP95), "")
	row("one at a time: added in all", ms(one.AddedP50), ms(one.AddedP95), "< 5 ms p50")
	row("one at a time: CPU per turn", known(one.CPUPerTurn), "", "")
	row(fmt.Sprintf("%d chats at once: turns per second", r.Setup.Chats), fmt.Sprintf("%.0f", r.AtOnce.TurnsPerSecond), "", "400")
	row(fmt.Sprintf("%d chats at once: message to answer", r.Setup.Chats), ms(r.AtOnce.P50), ms(r.AtOnce.P95), "")
	row(fmt.Sprintf("%d chats at once: CPU per turn", r.Setup.Chats), known(r.AtOnce.CPUPerTurn), "", "< 3 ms")
	row(fmt.Sprintf("%d chats at once: calls to Telegram per turn", r.Setup.Chats), fmt.Sprintf("%.1f", r.AtOnce.CallsPerTurn), "", "")
	row("memory, idle after the start", size(r.Memory.Idle), "", "")
	row(fmt.Sprintf("memory, peak with %d chats", r.Setup.Chats), size(r.Memory.PeakAtOnce), "", "< 60 MB")
	row("memory, peak of the whole run", size(r.Memory.Peak), "", "< 60 MB")
	for _, h := range r.Histories {
		row(fmt.Sprintf("history of %d turns: added in all", h.Turns), ms(h.Latency.AddedP50), ms(h.Latency.AddedP95), "flat")
		row(fmt.Sprintf("history of %d turns: CPU per turn", h.Turns), known(h.Latency.CPUPerTurn), "", "flat")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func ms(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// known is ms of a time that not every system tells.
func known(d time.Duration) string {
	if d == 0 {
		return "not available"
	}
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

func size(bytes int64) string {
	if bytes == 0 {
		return "not available"
	}
	return fmt.Sprintf("%.0f MB", float64(bytes)/1e6)
}
