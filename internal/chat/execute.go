package chat

import (
	"remote-agent/internal/command"
	"remote-agent/internal/sessions"
)

func executeCommand() *command.Command {
	return &command.Command{
		Name:    "execute",
		Usage:   "execute [plan] [note]",
		Summary: "run the plan in a new session",
		Example: "execute p-3",
		Menu:    true,
		Lane:    command.Turn,
		Prompt: &command.Prompt{
			Meta: sessions.CommandMeta{Name: "execute", Consumes: sessions.Plan},
			Expand: func(call command.Call, plan string) (string, []string) {
				text := "Carry out this plan step by step. Say what you did for each step and where you had to depart " +
					"from it.\n\nPlan:\n\n$PLAN"
				if call.Invoked().Rest != "" {
					text += "\n\nNote: $ARGUMENTS"
				}
				return template(text)(call, plan)
			},
		},
	}
}
