-- 00005, works with binaries from 00001: what the database refuses by itself
-- The assistant type is locked at creation; the audit log only grows.

-- +goose Up
-- +goose StatementBegin
CREATE FUNCTION remote_agent_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'check_violation';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER remote_agent_conversations_assistant_locked
  BEFORE UPDATE ON remote_agent_conversations
  FOR EACH ROW WHEN (OLD.ai_assistant_type IS DISTINCT FROM NEW.ai_assistant_type)
  EXECUTE FUNCTION remote_agent_refuse('ai_assistant_type is locked at creation');

CREATE TRIGGER audit_log_append_only
  BEFORE UPDATE OR DELETE ON audit_log
  FOR EACH ROW EXECUTE FUNCTION remote_agent_refuse('audit_log is append-only');

CREATE TRIGGER audit_log_no_truncate
  BEFORE TRUNCATE ON audit_log
  FOR EACH STATEMENT EXECUTE FUNCTION remote_agent_refuse('audit_log is append-only');
