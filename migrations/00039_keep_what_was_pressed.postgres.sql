-- 00039, works with binaries from 00001: a message stays when the pressing of its button is pruned

-- +goose Up
-- A button's event names the message that has it, which is the program's.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION remote_agent_leave_web() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_TABLE_NAME = 'deliveries' THEN
    DELETE FROM web_messages WHERE delivery_id = OLD.id::text;
  ELSE
    DELETE FROM web_messages WHERE id = OLD.message_id AND delivery_id IS NULL;
  END IF;
  RETURN NULL;
END $$;
-- +goose StatementEnd
