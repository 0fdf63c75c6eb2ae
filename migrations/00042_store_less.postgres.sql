-- 00042, works with binaries from 00042: the state before a turn is a part of its event
-- A turn has at most one checkpoint, so that a row and four indexes of its own are not needed.

-- +goose Up
-- Where the session stood, its git ref, and whether the turn was taken back.
ALTER TABLE inbound_events ADD COLUMN checkpoint_seq BIGINT;
ALTER TABLE inbound_events ADD COLUMN checkpoint_ref VARCHAR(255);
ALTER TABLE inbound_events ADD COLUMN checkpoint_undone BOOLEAN NOT NULL DEFAULT false;

UPDATE inbound_events AS e SET
  checkpoint_seq = c.seq, checkpoint_ref = NULLIF(c.ref, ''), checkpoint_undone = c.undone, session_id = COALESCE(c.session_id, e.session_id)
FROM checkpoints c WHERE c.event_id = e.id;

-- What is old is found by when it came in, this as well.
DROP INDEX idx_inbound_events_kept;
CREATE INDEX idx_inbound_events_kept
  ON inbound_events(accepted_ms) WHERE raw IS NOT NULL OR data IS NOT NULL OR checkpoint_seq IS NOT NULL;

CREATE OR REPLACE VIEW message AS
SELECT
  m.id,
  s.agent_id,
  m.kind AS event,
  m.run_id,
  CAST(s.conversation_id AS TEXT) AS thread_id,
  (SELECT CAST(e.id AS TEXT) FROM inbound_events e
    WHERE e.conversation_id = s.conversation_id AND e.seq > 0 AND e.session_id = m.session_id AND e.checkpoint_seq <= m.seq
    ORDER BY e.seq DESC LIMIT 1) AS checkpoint_id,
  m.role AS "from",
  m.content,
  CASE WHEN m.kind IN ('tool_call', 'tool_result') THEN message_json(m.data_json) END AS tools,
  (SELECT jsonb_build_object('number', p.number, 'version', p.version, 'state', p.state, 'goal', p.goal) FROM plans p
    WHERE p.session_id = m.session_id AND CAST(p.event_id AS TEXT) = m.run_id ORDER BY p.number DESC, p.version DESC LIMIT 1) AS plan,
  message_json(NULLIF(m.provider_metadata, '')) AS metadata,
  to_timestamp(m.created_at) AS "timestamp"
FROM agent_messages m
JOIN remote_agent_sessions s ON s.id = m.session_id;

DROP TABLE checkpoints;
