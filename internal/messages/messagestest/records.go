package messagestest

import (
	"fmt"

	"remote-agent/internal/messages"
)

// JoinRecords reads records in the order of their Seq: neighbors with the same
// nonzero Seq and the same role become one message, system records are skipped.
func JoinRecords(records []messages.Record) ([]messages.Message, error) {
	var msgs []messages.Message
	for _, r := range records {
		m, ok, err := messages.FromRecord(r)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", r.Seq, err)
		}
		if !ok {
			continue
		}
		if n := len(msgs); n > 0 && m.Seq != 0 && msgs[n-1].Seq == m.Seq && msgs[n-1].Role == m.Role {
			msgs[n-1].Blocks = append(msgs[n-1].Blocks, m.Blocks...)
			continue
		}
		msgs = append(msgs, m)
	}
	return msgs, nil
}
