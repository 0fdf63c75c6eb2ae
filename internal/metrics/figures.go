package metrics

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"
)

// Figures are what is measured when somebody asks for the metrics. What is not known is not
// served: an alert on a figure that stands still would never come.
type Figures struct {
	Inbox, Outbox Backlog
	Disk          Disk
	Backup        time.Time // when the newest backup was made; zero: there is none
	Budget        float64   // the part of the day's budget that is used; negative: there is none
	Stalled       Stalled
}

// Backlog is what waits.
type Backlog struct {
	Known  bool
	Depth  int
	Oldest time.Duration
}

// Stalled are the turns of this process from which nothing was heard for long, by what they
// wait for.
type Stalled struct{ Model, Tool, Command int }

// Disk is the room of the one with the data, in bytes; a total of zero is not known.
type Disk struct{ Free, Total int64 }

// Measure has the figures measured by measure whenever somebody asks. It is called before
// Handler serves.
func (m *Metrics) Measure(measure func(context.Context) Figures) {
	if m != nil {
		m.figures = measure
	}
}

// write appends the figures in the text format.
func (f Figures) write(text *bytes.Buffer) {
	last := ""
	gauge := func(known bool, name, labels string, value float64) {
		if !known {
			return
		}
		if name != last {
			fmt.Fprintf(text, "# HELP %s\n# TYPE %s gauge\n", name, name)
			last = name
		}
		fmt.Fprintf(text, "%s%s %s\n", name, labels, strconv.FormatFloat(value, 'f', -1, 64))
	}
	gauge(true, stalled, `{reason="command"}`, float64(f.Stalled.Command))
	gauge(true, stalled, `{reason="model"}`, float64(f.Stalled.Model))
	gauge(true, stalled, `{reason="tool"}`, float64(f.Stalled.Tool))
	gauge(f.Inbox.Known, queueDepth, `{queue="inbox"}`, float64(f.Inbox.Depth))
	gauge(f.Outbox.Known, queueDepth, `{queue="outbox"}`, float64(f.Outbox.Depth))
	gauge(f.Inbox.Known, queueOldest, `{queue="inbox"}`, f.Inbox.Oldest.Seconds())
	gauge(f.Outbox.Known, outboxOldest, "", f.Outbox.Oldest.Seconds())
	gauge(f.Disk.Total > 0, diskFree, "", float64(f.Disk.Free))
	gauge(f.Disk.Total > 0, diskTotal, "", float64(f.Disk.Total))
	gauge(!f.Backup.IsZero(), lastBackup, "", float64(f.Backup.Unix()))
	gauge(f.Budget >= 0, budgetUsed, `{scope="day"}`, f.Budget)
}
