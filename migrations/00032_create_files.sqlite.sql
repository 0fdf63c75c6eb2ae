-- 00032, works with binaries from 00001: files that people attached
-- Each file is there once, under its SHA-256. Its bytes are in DATA_DIR/files: one
-- process works on an SQLite database, and its log need not carry them.

-- +goose Up
CREATE TABLE files (
  hash TEXT PRIMARY KEY,
  size BIGINT NOT NULL,
  data BLOB,
  -- When somebody attached it last, in Unix milliseconds.
  used_ms BIGINT NOT NULL,
  -- 1 when a message that had it was deleted: it goes unless another one has it.
  released BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX idx_files_released ON files(hash) WHERE released = 1;
CREATE INDEX idx_files_used ON files(used_ms);

CREATE INDEX idx_agent_messages_file
  ON agent_messages(CASE WHEN json_valid(data_json) THEN json_extract(data_json, '$.file') END) WHERE kind = 'attachment';

-- Which messages have which files.
CREATE VIEW message_files AS
  SELECT id AS message_id, CASE WHEN json_valid(data_json) THEN json_extract(data_json, '$.file') END AS hash
  FROM agent_messages WHERE kind = 'attachment';

-- +goose StatementBegin
CREATE TRIGGER agent_messages_release_file
  AFTER DELETE ON agent_messages
  FOR EACH ROW WHEN OLD.kind = 'attachment'
BEGIN
  UPDATE files SET released = 1
  WHERE hash = CASE WHEN json_valid(OLD.data_json) THEN json_extract(OLD.data_json, '$.file') END;
END;
-- +goose StatementEnd
