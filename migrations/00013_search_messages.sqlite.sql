-- 00013, works with binaries from 00001: search in messages, care of old rows
-- What people and assistants wrote is indexed, the first 100,000 characters of
-- each message; calls of tools, their output and thinking are not.

-- +goose Up
CREATE VIEW agent_messages_searchable AS
SELECT id, substr(content, 1, 100000) AS body
FROM agent_messages
WHERE kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system');

-- The text is in agent_messages and not here a second time. Letters are compared
-- without case and with their accents, as PostgreSQL does it.
CREATE VIRTUAL TABLE agent_messages_fts USING fts5(
  body, content = 'agent_messages_searchable', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 0');

INSERT INTO agent_messages_fts(agent_messages_fts) VALUES ('rebuild');

-- +goose StatementBegin
CREATE TRIGGER agent_messages_fts_insert
  AFTER INSERT ON agent_messages
  FOR EACH ROW WHEN NEW.kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system')
BEGIN
  INSERT INTO agent_messages_fts(rowid, body) VALUES (NEW.id, substr(NEW.content, 1, 100000));
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER agent_messages_fts_delete
  AFTER DELETE ON agent_messages
  FOR EACH ROW WHEN OLD.kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system')
BEGIN
  INSERT INTO agent_messages_fts(agent_messages_fts, rowid, body) VALUES ('delete', OLD.id, substr(OLD.content, 1, 100000));
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER agent_messages_fts_update_old
  AFTER UPDATE OF id, kind, content ON agent_messages
  FOR EACH ROW WHEN OLD.kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system')
BEGIN
  INSERT INTO agent_messages_fts(agent_messages_fts, rowid, body) VALUES ('delete', OLD.id, substr(OLD.content, 1, 100000));
  INSERT INTO agent_messages_fts(rowid, body)
    SELECT NEW.id, substr(NEW.content, 1, 100000)
    WHERE NEW.kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER agent_messages_fts_update_new
  AFTER UPDATE OF id, kind, content ON agent_messages
  FOR EACH ROW WHEN OLD.kind IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system')
    AND NEW.kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system')
BEGIN
  INSERT INTO agent_messages_fts(rowid, body) VALUES (NEW.id, substr(NEW.content, 1, 100000));
END;
-- +goose StatementEnd

CREATE INDEX idx_remote_agent_sessions_started
  ON remote_agent_sessions(started_at, id);

CREATE INDEX idx_inbound_events_kept
  ON inbound_events(accepted_ms) WHERE raw IS NOT NULL OR data IS NOT NULL;
