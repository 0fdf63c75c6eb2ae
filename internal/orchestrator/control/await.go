package control

import (
	"remote-agent/internal/command"
	"remote-agent/internal/messages"
)

// Await has the answer to a command that comes in as event told to the caller in the
// place of its conversation. What the command does there besides, such as a change of
// the message that asked, is seen there all the same. If this process ends meanwhile,
// whoever runs the command next answers in the conversation. The caller calls forget
// when it waits no longer.
func (c *Control) Await(event messages.EventID) (answer <-chan command.Reply, forget func()) {
	told := make(chan command.Reply, 1)
	c.told.Store(event, told)
	return told, func() { c.told.Delete(event) }
}

// tell gives an answer to whoever awaits it, and returns what is left to be said in the
// conversation: all of it if nobody does, and a plan always.
func (c *Control) tell(event messages.EventID, reply command.Reply) command.Reply {
	told, ok := c.told.LoadAndDelete(event)
	if !ok {
		return reply
	}
	told.(chan command.Reply) <- reply // has room for the one
	if reply.Plan == nil {
		reply.Text, reply.Buttons, reply.Files = "", nil, nil
	}
	reply.Note, reply.Unkept = "", ""
	return reply
}
