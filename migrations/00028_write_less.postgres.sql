-- 00028, works with binaries from 00001: a turn writes less

-- +goose Up
-- What a turn or a session used is found among what was used in its conversation, at
-- about that time. So usage refers to both without an index that each turn writes,
-- and without looking each of them up.
DROP INDEX idx_usage_records_event;
DROP INDEX idx_usage_records_session;
ALTER TABLE usage_records DROP CONSTRAINT usage_records_event_id_fkey;
ALTER TABLE usage_records DROP CONSTRAINT usage_records_session_id_fkey;

-- +goose StatementBegin
CREATE FUNCTION usage_records_forget() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  CASE TG_TABLE_NAME
  WHEN 'inbound_events' THEN
    UPDATE usage_records SET event_id = NULL WHERE conversation_id = OLD.conversation_id AND event_id = OLD.id;
  WHEN 'remote_agent_sessions' THEN
    UPDATE usage_records SET session_id = NULL WHERE conversation_id = OLD.conversation_id AND session_id = OLD.id;
  ELSE
    UPDATE usage_records SET session_id = NULL WHERE conversation_id = OLD.id AND session_id IS NOT NULL;
  END CASE;
  RETURN OLD;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER usage_records_event_deleted AFTER DELETE ON inbound_events
  FOR EACH ROW EXECUTE FUNCTION usage_records_forget();

CREATE TRIGGER usage_records_session_deleted AFTER DELETE ON remote_agent_sessions
  FOR EACH ROW EXECUTE FUNCTION usage_records_forget();

-- Its usage belongs to no conversation when its sessions go with it.
CREATE TRIGGER usage_records_conversation_deleted BEFORE DELETE ON remote_agent_conversations
  FOR EACH ROW EXECUTE FUNCTION usage_records_forget();
