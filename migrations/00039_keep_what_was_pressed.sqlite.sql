-- 00039, works with binaries from 00001: a message stays when the pressing of its button is pruned

-- +goose Up
DROP TRIGGER inbound_events_leave_web;

-- A button's event names the message that has it, which is the program's.
-- +goose StatementBegin
CREATE TRIGGER inbound_events_leave_web
  AFTER UPDATE OF data ON inbound_events
  FOR EACH ROW WHEN NEW.data IS NULL AND OLD.data IS NOT NULL AND OLD.platform_type = 'web'
BEGIN
  DELETE FROM web_messages WHERE id = OLD.message_id AND delivery_id IS NULL;
END;
-- +goose StatementEnd
