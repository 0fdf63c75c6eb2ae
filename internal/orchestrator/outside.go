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
// the answer, which is not said in the conversation. known is false if there is none, or
// none within a few seconds: what was taken in waits for its turn, was refused or came
// before, and what follows from it is seen in the conversation. The same event twice does
// once what it says.
func (o *Orchestrator) Command(ctx context.Context, in messages.Inbound) (answer command.Reply, known bool, err error) {
	answers, forget := o.control.Await(in.Event)
	defer forget()
	if err := o.Accept(ctx, in); err != nil {
		return command.Reply{}, false, err
	}
	patience := time.NewTimer(commandPatience)
	defer patience.Stop()
	select {
	case answer, known = <-answers:
		return answer, known, nil
	case <-patience.C:
	case <-ctx.Done():
		return command.Reply{}, false, ctx.Err()
	}
	if !forget() { // it is just being stored
		select {
		case answer, known = <-answers:
		case <-ctx.Done():
			return command.Reply{}, false, ctx.Err()
		}
	}
	return answer, known, nil
}
