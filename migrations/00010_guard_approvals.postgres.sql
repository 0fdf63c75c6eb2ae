-- 00010, works with binaries from 00001: what was shown is what is allowed
-- What an approval is about never changes, and a decision is taken once.

-- +goose Up
CREATE TRIGGER approvals_request_locked
  BEFORE UPDATE ON approvals
  FOR EACH ROW WHEN (
    (OLD.number, OLD.conversation_id, OLD.tool_call_id, OLD.tool_name, OLD.request, OLD.sha256, OLD.kind, OLD.title, OLD.detail, OLD.rule, OLD.requester, OLD.created_ms, OLD.expires_ms)
    IS DISTINCT FROM
    (NEW.number, NEW.conversation_id, NEW.tool_call_id, NEW.tool_name, NEW.request, NEW.sha256, NEW.kind, NEW.title, NEW.detail, NEW.rule, NEW.requester, NEW.created_ms, NEW.expires_ms))
  EXECUTE FUNCTION remote_agent_refuse('what an approval is about does not change');

CREATE TRIGGER approvals_settled_once
  BEFORE UPDATE ON approvals
  FOR EACH ROW WHEN (OLD.state <> 'waiting' AND OLD.state IS DISTINCT FROM NEW.state)
  EXECUTE FUNCTION remote_agent_refuse('an approval is settled once');
