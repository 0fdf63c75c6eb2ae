package orchestrator

import (
	"context"
	"time"

	"remote-agent/internal/command"
	"remote-agent/internal/messages"
)

// commandPatience is how long Command waits for an answer.
const commandPatience = 5 * time.Second

// Command takes in a command, or a button that was pressed, of somebody who is not in
// its conversation, as in the browser, on the way that all others come in, and returns
// the answer, which is not said in the conversation. known is false if there is none
// within a few seconds: the command waits for its turn, and answers in the conversation.
func (o *Orchestrator) Command(ctx context.Context, in messages.Inbound) (answer command.Reply, known bool, err error) {
	answers, forget := o.control.Await(in.Event)
	defer forget()
	if err := o.Accept(ctx, in); err != nil {
		return command.Reply{}, false, err
	}
	patience := time.NewTimer(commandPatience)
	defer patience.Stop()
	select {
	case answer = <-answers:
		return answer, true, nil
	case <-patience.C:
		return command.Reply{}, false, nil
	case <-ctx.Done():
		return command.Reply{}, false, ctx.Err()
	}
}
