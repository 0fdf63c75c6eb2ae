-- 00038, works with binaries from 00001: pages of sessions, by who wrote in them and by what they are of

-- +goose Up
CREATE INDEX idx_inbound_events_sender
  ON inbound_events(sender, platform_type, conversation_id) WHERE seq > 0;

CREATE INDEX idx_remote_agent_sessions_assistant
  ON remote_agent_sessions(ai_assistant_type, started_at, id);

CREATE INDEX idx_remote_agent_sessions_repository
  ON remote_agent_sessions(codebase_id, started_at, id);
