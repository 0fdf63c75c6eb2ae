package control

import (
	"remote-agent/internal/command"
	"remote-agent/internal/messages"
)

// Await has the answer to a command that comes in as event told to the caller, once it is
// stored, in the place of its conversation. What the command does there besides, such as
// a change of the message that asked, is seen there all the same. The channel is closed
// when nothing will be told: because the event is no command, came before, was refused, or
// failed and is run again, which answers in the conversation. If this process ends
// meanwhile, whoever runs the command next answers there, too. forget says that the caller waits no longer; it returns false if
// the answer is just being stored and will still come, or the channel be closed.
func (c *Control) Await(event messages.EventID) (answer <-chan command.Reply, forget func() bool) {
	told := make(chan command.Reply, 1)
	if _, twice := c.told.LoadOrStore(event, told); twice { // a form that was sent twice at once
		close(told)
		return told, func() bool { return true }
	}
	return told, func() bool { return c.told.CompareAndDelete(event, told) }
}

// Dismiss ends the wait for the answer to an event that this process does not run.
func (c *Control) Dismiss(event messages.EventID) {
	if told := c.take(event); told != nil {
		close(told)
	}
}

// take returns where the answer to an event is awaited, nil if nowhere. Whoever takes it
// closes it.
func (c *Control) take(event messages.EventID) chan command.Reply {
	told, ok := c.told.LoadAndDelete(event)
	if !ok {
		return nil
	}
	return told.(chan command.Reply)
}

// leftToSay is what is said in the conversation when somebody elsewhere is told the
// answer: a plan and what follows from the command, and nothing else.
func leftToSay(reply command.Reply) command.Reply {
	if reply.Plan == nil {
		reply.Text, reply.Buttons, reply.Files = "", nil, nil
	}
	reply.Note, reply.Unkept = "", ""
	return reply
}
