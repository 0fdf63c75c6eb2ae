package chat

import (
	"cmp"
	"strings"

	"remote-agent/internal/command"
	"remote-agent/internal/sessions"
)

func planCommand() *command.Command {
	return &command.Command{
		Name:    "plan",
		Aliases: []string{"plan_feature"}, // seed 002's name
		Usage:   "plan <goal>",
		Summary: "write a plan without changing anything",
		Example: "plan add a --json flag",
		Rank:    1,
		Reading: command.ReadingAnywhere,
		Menu:    true,
		Lane:    command.Turn,
		Prompt: &command.Prompt{
			Meta:    sessions.CommandMeta{Name: "plan-feature", Produces: sessions.Plan},
			Missing: "Write the goal after the command: `/plan add a --json flag`.",
			Expand: template("Write a plan for the goal below. Do not carry it out yet.\n\n" +
				"State in one sentence what will be different when it is done. Then number the steps; each names the " +
				"files or parts it touches and how one can see that it worked. Say what you leave out and what you " +
				"are unsure of. Keep it short enough to be read in a minute.\n\nGoal: $ARGUMENTS"),
		},
	}
}

// template returns an Expand for a text with $ARGUMENTS and $PLAN. Both are
// replaced once; what they are replaced by is not expanded again.
func template(text string) func(command.Call, string) (string, []string) {
	return func(call command.Call, plan string) (string, []string) {
		plan = cmp.Or(plan, "(there is no plan in this conversation yet; say so and ask for one)")
		return strings.NewReplacer("$ARGUMENTS", call.Invoked().Rest, "$PLAN", plan).Replace(text), nil
	}
}
