-- 00007, works with binaries from 00001: what was shown is what runs
-- A version of a plan never changes, and a decision is taken once.

-- +goose Up
CREATE TRIGGER plans_text_locked
  BEFORE UPDATE ON plans
  FOR EACH ROW WHEN (
    (OLD.id, OLD.number, OLD.version, OLD.conversation_id, OLD.goal, OLD.body, OLD.sha256, OLD.author, OLD.requester, OLD.created_ms)
    IS DISTINCT FROM
    (NEW.id, NEW.number, NEW.version, NEW.conversation_id, NEW.goal, NEW.body, NEW.sha256, NEW.author, NEW.requester, NEW.created_ms))
  EXECUTE FUNCTION remote_agent_refuse('a version of a plan does not change');

CREATE TRIGGER plans_settled_once
  BEFORE UPDATE ON plans
  FOR EACH ROW WHEN (
    OLD.state IN ('rejected', 'expired', 'superseded', 'done') AND OLD.state IS DISTINCT FROM NEW.state)
  EXECUTE FUNCTION remote_agent_refuse('a plan is settled once');
