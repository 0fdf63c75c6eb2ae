package chat

import (
	"context"
	"fmt"
	"strings"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/doctor"
	"remote-agent/internal/fault"
)

// doctorPatience is how long the checks of /doctor may take: what has not ended by then is
// left out.
const doctorPatience = 20 * time.Second

func (ov *overview) doctorCommand() *command.Command {
	return &command.Command{
		Name:    "doctor",
		Usage:   "doctor [all]",
		Summary: "check the installation and show how to fix what is wrong",
		Details: "It takes up to 20 seconds. `doctor all` lists every check, also those that passed.",
		Example: "doctor all",
		Owners:  true,
		Where:   command.Aside,
		Run:     ov.runDoctor,
	}
}

// runDoctor answers where nobody else reads along: the findings name accounts, folders
// and hosts.
func (ov *overview) runDoctor(ctx context.Context, r command.Request) (command.Reply, error) {
	all := len(r.Call.Args) == 1 && strings.EqualFold(r.Call.Args[0], "all")
	switch {
	case !private(r.Entry.In):
		return command.Reply{}, fault.New(fault.Forbidden, "Others can read this chat; use a private one.")
	case len(r.Call.Args) > 0 && !all:
		return command.Reply{}, fault.New(fault.Invalid, "`/doctor` shows problems, `/doctor all` every check.")
	case ov.doctor == nil:
		return command.Reply{}, fault.New(fault.Unsupported, "The checks are not available here. Use `bot doctor` on the server.")
	}
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	return command.Reply{Text: ov.redact.String(doctorText(ov.doctor(ctx), all, ov.prefix(r.Conv.Key)))}, nil
}

// doctorText shows a report: what is wrong and what was left out, or every finding.
func doctorText(report doctor.Report, all bool, prefix string) string {
	var b strings.Builder
	late := false
	fmt.Fprintf(&b, "**Checks:** %s\n", report.Sum())
	sign := map[doctor.Status]string{doctor.OK: "✔", doctor.Skip: "–", doctor.Warn: "⚠", doctor.Fail: "✖"}
	for _, f := range report.Findings {
		late = late || f.Late
		if !all && !f.Late && f.Status != doctor.Warn && f.Status != doctor.Fail {
			continue
		}
		fmt.Fprintf(&b, "\n- %s %s, %s: %s", sign[f.Status], f.Area, literal(f.Check), literal(f.Detail))
		if f.Fix != "" {
			fmt.Fprintf(&b, "  \n  Fix: %s", literal(f.Fix))
		}
	}
	b.WriteString("\n")
	if late {
		b.WriteString("\nSome checks took too long and were left out. `bot doctor` on the server waits longer.")
	}
	if !all {
		fmt.Fprintf(&b, "\n`%sdoctor all` lists every check.", prefix)
	}
	return b.String()
}
