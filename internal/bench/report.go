package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
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
	Floors     *Floors    `json:"floors,omitempty"` // nil if they were not measured
	Ratios     *Ratios    `json:"ratios,omitempty"` // the bot's figures divided by the floors'; nil without floors
}

// Floors are what the least relay takes in the same run; see Relay.
type Floors struct {
	KeepsNothing Floor `json:"keeps_nothing"`
	Durable      Floor `json:"durable"`
}

// Floor is what one relay takes.
type Floor struct {
	Start      time.Duration `json:"start_ns"` // until its first poll
	OneAtATime Latency       `json:"one_at_a_time"`
	AtOnce     Throughput    `json:"at_once"`
	Peak       int64         `json:"peak"` // resident memory in bytes
}

// Ratios are the bot's figures against each floor.
type Ratios struct {
	KeepsNothing Ratio `json:"keeps_nothing"`
	Durable      Ratio `json:"durable"`
}

// Ratio is the bot's figures divided by a floor's; zero is not known.
type Ratio struct {
	AddedP50       float64 `json:"added_p50"` // one at a time, as the next two
	AddedP95       float64 `json:"added_p95"`
	CPUPerTurn     float64 `json:"cpu_per_turn"`
	TurnsPerSecond float64 `json:"turns_per_second_at_once"`
	CPUAtOnce      float64 `json:"cpu_per_turn_at_once"`
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

// postgres is Setup.Database of a run on PostgreSQL.
const postgres = "PostgreSQL"

// Setup is how it ran.
type Setup struct {
	Database string `json:"database"`
	Turns    int    `json:"turns"`
	Chats    int    `json:"chats"`
	Samples  int    `json:"samples"`
	Replicas int    `json:"replicas"` // while all chats write at once, and after it
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
	setup := r.Setup.Database
	if r.Setup.Replicas > 1 {
		setup += fmt.Sprintf(", %d replicas from \"at once\" on", r.Setup.Replicas)
	}
	fmt.Fprintf(&b, "setup     %s; emulated Telegram and model without delay on the same machine; limits off\n\n", setup)

	if err := writeRows(&b, r.rows()); err != nil {
		return err
	}
	if err := r.writeFloors(&b); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// rows are the bot's figures.
func (r Report) rows() [][]string {
	aim, one := aimsFor(r.Setup.Database), r.OneAtATime
	crowd := fmt.Sprintf("%d chats", r.Setup.Chats)
	rows := [][]string{
		{"figure", "p50", "p95", "aim"},
		{"start to the first poll", ms(r.Start.Again), "", ""},
		{"start on an empty database", ms(r.Start.Empty), "", aim.start},
		{"one at a time: message in to model request", ms(one.InP50), ms(one.InP95), ""},
		{"one at a time: model done to final text", ms(one.OutP50), ms(one.OutP95), ""},
		{"one at a time: added in all", ms(one.AddedP50), ms(one.AddedP95), aim.added},
		{"one at a time: CPU per turn", known(one.CPUPerTurn), "", aim.cpu},
		{crowd + " at once: turns per second", decimals(r.AtOnce.TurnsPerSecond, 0, ""), "", aim.turns},
		{crowd + " at once: message to answer", ms(r.AtOnce.P50), ms(r.AtOnce.P95), ""},
		{crowd + " at once: CPU per turn", known(r.AtOnce.CPUPerTurn), "", aim.cpu},
		{crowd + " at once: calls to Telegram per turn", decimals(r.AtOnce.CallsPerTurn, 1, ""), "", ""},
		{"memory, idle after the start", size(r.Memory.Idle), "", ""},
		{"memory, peak with " + crowd, size(r.Memory.PeakAtOnce), "", aim.memory},
		{"memory, peak of the whole run", size(r.Memory.Peak), "", aim.memory},
	}
	for _, h := range r.Histories {
		history := fmt.Sprintf("history of %d turns: ", h.Turns)
		rows = append(rows,
			[]string{history + "added in all", ms(h.Latency.AddedP50), ms(h.Latency.AddedP95), "flat; 500 turns: 2 ms more p50"},
			[]string{history + "CPU per turn", known(h.Latency.CPUPerTurn), "", "flat; 500 turns: 3 ms more"})
	}
	return rows
}

func writeRows(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, cells := range rows {
		_, _ = fmt.Fprintln(t, strings.Join(cells, "\t")) // a strings.Builder takes everything
	}
	return t.Flush()
}

// aims are what the figures are meant to reach, for people.
type aims struct{ start, added, turns, cpu, memory string }

func aimsFor(database string) aims {
	if database == postgres {
		return aims{start: "< 250 ms", added: "<= 6 ms p50", turns: ">= 300", cpu: "< 8 ms with the server's", memory: "< 45 MB"}
	}
	return aims{start: "< 150 ms", added: "<= 3.0 ms p50, 6 ms p95", turns: ">= 500", cpu: "<= 2 ms", memory: "< 45 MB"}
}

// The bars are for SQLite, which flushes on this machine as the durable floor does.
const (
	barP50, barP95 = 1.8, 2.5
	barTurns       = 0.45
)

// writeFloors writes the table of the floors and of the bot against them.
func (r Report) writeFloors(b *strings.Builder) error {
	if r.Floors == nil || r.Ratios == nil {
		return nil
	}
	bars := [3]string{}
	if r.Setup.Database != postgres {
		bars = [3]string{fmt.Sprintf("<= %.1f of durable", barP50), fmt.Sprintf("<= %.1f of durable", barP95), fmt.Sprintf(">= %.2f of durable", barTurns)}
	}
	fmt.Fprintf(b, "\nfloors: a relay that polls, asks the model and sends; durable: it flushes every message and reply to a file first\n\n")
	crowd := fmt.Sprintf("%d chats at once: ", r.Setup.Chats)
	rows := [][]string{{"figure", "floor", "durable floor", "bot / floor", "bot / durable", "bar"}}
	for _, f := range []struct {
		name  string
		of    func(Floor) string
		ratio func(Ratio) float64
		bar   string
	}{
		{"one at a time: added in all, p50", func(f Floor) string { return ms(f.OneAtATime.AddedP50) }, func(r Ratio) float64 { return r.AddedP50 }, bars[0]},
		{"one at a time: added in all, p95", func(f Floor) string { return ms(f.OneAtATime.AddedP95) }, func(r Ratio) float64 { return r.AddedP95 }, bars[1]},
		{"one at a time: CPU per turn", func(f Floor) string { return known(f.OneAtATime.CPUPerTurn) }, func(r Ratio) float64 { return r.CPUPerTurn }, ""},
		{crowd + "turns per second", func(f Floor) string { return decimals(f.AtOnce.TurnsPerSecond, 0, "") }, func(r Ratio) float64 { return r.TurnsPerSecond }, bars[2]},
		{crowd + "CPU per turn", func(f Floor) string { return known(f.AtOnce.CPUPerTurn) }, func(r Ratio) float64 { return r.CPUAtOnce }, ""},
	} {
		rows = append(rows, []string{
			f.name, f.of(r.Floors.KeepsNothing), f.of(r.Floors.Durable),
			orUnknown(f.ratio(r.Ratios.KeepsNothing), 2, ""), orUnknown(f.ratio(r.Ratios.Durable), 2, ""), f.bar,
		})
	}
	return writeRows(b, rows)
}

func ms(d time.Duration) string    { return decimals(float64(d)/1e6, 1, " ms") }
func known(d time.Duration) string { return orUnknown(float64(d)/1e6, 2, " ms") }
func size(bytes int64) string      { return orUnknown(float64(bytes)/1e6, 0, " MB") }

// orUnknown words a figure that not every system tells.
func orUnknown(value float64, digits int, unit string) string {
	if value == 0 {
		return "not available"
	}
	return decimals(value, digits, unit)
}

func decimals(value float64, digits int, unit string) string {
	return strconv.FormatFloat(value, 'f', digits, 64) + unit
}
