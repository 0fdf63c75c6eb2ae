-- 00028, works with binaries from 00001: a turn writes less
-- Each page that a turn changes is written to the write-ahead log, most of them of
-- indexes.

-- +goose Up
-- What a turn or a session used is found among what was used in its conversation, at
-- about that time. So usage refers to both without an index that each turn writes.
DROP INDEX idx_usage_records_event;
DROP INDEX idx_usage_records_session;

-- References do not change what is stored, so that the table need not be copied.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(replace(sql,
  ' REFERENCES inbound_events(id) ON DELETE SET NULL', ''),
  ' REFERENCES remote_agent_sessions(id) ON DELETE SET NULL', '')
WHERE type = 'table' AND name = 'usage_records';
PRAGMA writable_schema = RESET;

-- +goose StatementBegin
CREATE TRIGGER usage_records_event_deleted AFTER DELETE ON inbound_events
  FOR EACH ROW WHEN OLD.conversation_id IS NOT NULL
BEGIN
  UPDATE usage_records SET event_id = NULL WHERE conversation_id = OLD.conversation_id AND event_id = OLD.id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER usage_records_session_deleted AFTER DELETE ON remote_agent_sessions
BEGIN
  UPDATE usage_records SET session_id = NULL WHERE conversation_id = OLD.conversation_id AND session_id = OLD.id;
END;
-- +goose StatementEnd

-- Its usage belongs to no conversation when its sessions go with it.
-- +goose StatementBegin
CREATE TRIGGER usage_records_conversation_deleted BEFORE DELETE ON remote_agent_conversations
BEGIN
  UPDATE usage_records SET session_id = NULL WHERE conversation_id = OLD.id AND session_id IS NOT NULL;
END;
-- +goose StatementEnd

-- The index of words is brought up to date by and by, many messages at once, and not
-- with each message: it has all of them up to its last number, and none behind it. A
-- search reads those behind it. What is changed or deleted up to there is changed in
-- the index in the same transaction, so that its words are gone at once.
DROP TRIGGER agent_messages_fts_insert;
DROP TRIGGER agent_messages_fts_delete;
DROP TRIGGER agent_messages_fts_update_old;
DROP TRIGGER agent_messages_fts_update_new;

-- +goose StatementBegin
CREATE TRIGGER agent_messages_fts_insert
  AFTER INSERT ON agent_messages
  FOR EACH ROW WHEN NEW.kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system')
    AND NEW.id < (SELECT max(d.id) FROM agent_messages_fts_docsize d)
BEGIN
  INSERT INTO agent_messages_fts(rowid, body) VALUES (NEW.id, substr(NEW.content, 1, 100000));
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER agent_messages_fts_delete
  AFTER DELETE ON agent_messages
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM agent_messages_fts_docsize d WHERE d.id = OLD.id)
BEGIN
  INSERT INTO agent_messages_fts(agent_messages_fts, rowid, body) VALUES ('delete', OLD.id, substr(OLD.content, 1, 100000));
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER agent_messages_fts_update
  AFTER UPDATE OF id, kind, content ON agent_messages
BEGIN
  INSERT INTO agent_messages_fts(agent_messages_fts, rowid, body)
    SELECT 'delete', OLD.id, substr(OLD.content, 1, 100000)
    WHERE EXISTS (SELECT 1 FROM agent_messages_fts_docsize d WHERE d.id = OLD.id);
  INSERT INTO agent_messages_fts(rowid, body)
    SELECT NEW.id, substr(NEW.content, 1, 100000)
    WHERE NEW.kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system')
      AND NEW.id < (SELECT max(d.id) FROM agent_messages_fts_docsize d);
END;
-- +goose StatementEnd
