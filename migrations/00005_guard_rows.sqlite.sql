-- 00005, works with binaries from 00001: what the database refuses by itself
-- The assistant type is locked at creation; the audit log only grows.

-- +goose Up
-- +goose StatementBegin
CREATE TRIGGER remote_agent_conversations_assistant_locked
  BEFORE UPDATE ON remote_agent_conversations
  FOR EACH ROW WHEN OLD.ai_assistant_type IS NOT NEW.ai_assistant_type
BEGIN
  SELECT RAISE(ABORT, 'ai_assistant_type is locked at creation');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_log_no_update
  BEFORE UPDATE ON audit_log
BEGIN
  SELECT RAISE(ABORT, 'audit_log is append-only');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER audit_log_no_delete
  BEFORE DELETE ON audit_log
BEGIN
  SELECT RAISE(ABORT, 'audit_log is append-only');
END;
-- +goose StatementEnd
