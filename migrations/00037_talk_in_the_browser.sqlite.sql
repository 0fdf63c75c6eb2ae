-- 00037, works with binaries from 00001: conversations in the browser
-- Columns that end in _ms are Unix milliseconds; 0 is never.

-- +goose Up
-- A conversation that somebody began in the browser, and whose it is, as the audit log
-- names accounts. Its id is the platform_conversation_id of the platform "web".
CREATE TABLE web_chats (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  last_seq BIGINT NOT NULL DEFAULT 0,
  changed_ms BIGINT NOT NULL
);

CREATE INDEX idx_web_chats_account
  ON web_chats(account, changed_ms);

-- What stands in it. delivery_id is that of the program's own messages, so that one is
-- there once however often it is sent; author is who said the others. event is what the
-- engine has not taken yet of what somebody said.
CREATE TABLE web_messages (
  id TEXT PRIMARY KEY,
  chat_id TEXT NOT NULL REFERENCES web_chats(id) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  delivery_id TEXT,
  author TEXT NOT NULL DEFAULT '',
  body TEXT NOT NULL,
  buttons TEXT NOT NULL DEFAULT '[]',
  mark TEXT NOT NULL DEFAULT '',
  event TEXT,
  created_ms BIGINT NOT NULL
);

CREATE UNIQUE INDEX idx_web_messages_place
  ON web_messages(chat_id, seq);

CREATE UNIQUE INDEX idx_web_messages_delivery
  ON web_messages(delivery_id) WHERE delivery_id IS NOT NULL;

CREATE INDEX idx_web_messages_event
  ON web_messages(chat_id, seq) WHERE event IS NOT NULL;

CREATE TABLE web_files (
  id TEXT PRIMARY KEY,
  message_id TEXT NOT NULL REFERENCES web_messages(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  media_type TEXT NOT NULL,
  size BIGINT NOT NULL,
  data BLOB NOT NULL
);

CREATE INDEX idx_web_files_message
  ON web_files(message_id);

-- What was said is deleted wherever it stands.
-- +goose StatementBegin
CREATE TRIGGER deliveries_leave_web
  AFTER DELETE ON deliveries
  FOR EACH ROW
BEGIN
  DELETE FROM web_messages WHERE delivery_id = OLD.id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER deliveries_emptied_on_web
  AFTER UPDATE OF body ON deliveries
  FOR EACH ROW WHEN NEW.body = '' AND OLD.body <> ''
BEGIN
  DELETE FROM web_messages WHERE delivery_id = OLD.id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER inbound_events_leave_web
  AFTER UPDATE OF data ON inbound_events
  FOR EACH ROW WHEN NEW.data IS NULL AND OLD.data IS NOT NULL AND OLD.platform_type = 'web'
BEGIN
  DELETE FROM web_messages WHERE id = OLD.message_id;
END;
-- +goose StatementEnd
