-- 00032, works with binaries from 00001: files that people attached
-- Each file is there once, under its SHA-256. Where several replicas may share the
-- work, its bytes are in the row, so that each of them can read what another stored.

-- +goose Up
CREATE TABLE files (
  hash CHAR(64) PRIMARY KEY,
  size BIGINT NOT NULL,
  data BYTEA,
  -- When somebody attached it last, in Unix milliseconds.
  used_ms BIGINT NOT NULL,
  -- 1 when a message that had it was deleted: it goes unless another one has it.
  released BIGINT NOT NULL DEFAULT 0
);
ALTER TABLE files ALTER COLUMN data SET STATISTICS 0, ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE INDEX idx_files_released ON files(hash) WHERE released = 1;
CREATE INDEX idx_files_used ON files(used_ms);

CREATE INDEX idx_agent_messages_file
  ON agent_messages(substring(data_json FROM '"file":"([0-9a-f]{64})"')) WHERE kind = 'attachment';

-- Which messages have which files.
CREATE VIEW message_files AS
  SELECT id AS message_id, substring(data_json FROM '"file":"([0-9a-f]{64})"') AS hash
  FROM agent_messages WHERE kind = 'attachment';

-- +goose StatementBegin
CREATE FUNCTION remote_agent_release_file() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE files SET released = 1 WHERE hash = substring(OLD.data_json FROM '"file":"([0-9a-f]{64})"');
  RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER agent_messages_release_file
  AFTER DELETE ON agent_messages
  FOR EACH ROW WHEN (OLD.kind = 'attachment')
  EXECUTE FUNCTION remote_agent_release_file();
