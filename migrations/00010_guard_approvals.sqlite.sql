-- 00010, works with binaries from 00001: what was shown is what is allowed
-- What an approval is about never changes, and a decision is taken once.

-- +goose Up
-- +goose StatementBegin
CREATE TRIGGER approvals_request_locked
  BEFORE UPDATE ON approvals
  FOR EACH ROW WHEN
    (OLD.number, OLD.conversation_id, OLD.tool_call_id, OLD.tool_name, OLD.request, OLD.sha256, OLD.kind, OLD.title, OLD.detail, OLD.rule, OLD.requester, OLD.created_ms, OLD.expires_ms)
    IS NOT
    (NEW.number, NEW.conversation_id, NEW.tool_call_id, NEW.tool_name, NEW.request, NEW.sha256, NEW.kind, NEW.title, NEW.detail, NEW.rule, NEW.requester, NEW.created_ms, NEW.expires_ms)
BEGIN
  SELECT RAISE(ABORT, 'what an approval is about does not change');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER approvals_settled_once
  BEFORE UPDATE ON approvals
  FOR EACH ROW WHEN OLD.state <> 'waiting' AND OLD.state IS NOT NEW.state
BEGIN
  SELECT RAISE(ABORT, 'an approval is settled once');
END;
-- +goose StatementEnd
