-- 00040, works with binaries from 00001: sums of usage over years

-- +goose Up
-- What was used on a day that is over, summed up (spend.Day), in days since 1970. The
-- records are what counts: whatever changes one of a day takes its row away, and sums are
-- made from the records until the day is summed up again.
CREATE TABLE usage_days (
  day BIGINT PRIMARY KEY,
  format INTEGER NOT NULL,
  body BYTEA NOT NULL
);

-- Ids are not made smaller by compressing them.
ALTER TABLE usage_days ALTER COLUMN body SET STORAGE EXTERNAL;

-- Events that may have usage on other days than that on which they were accepted. All
-- others have it on that day only, so that it is enough to count them there.
CREATE TABLE usage_spread (
  event_id UUID PRIMARY KEY
);

INSERT INTO usage_spread (event_id)
SELECT DISTINCT u.event_id
FROM usage_records u LEFT JOIN inbound_events e ON e.id = u.event_id
WHERE u.event_id IS NOT NULL AND u.at_ms / 86400000 IS DISTINCT FROM e.accepted_ms / 86400000;

-- Whoever changes records of a day holds its lock until the end of the transaction, and
-- who sums the day up holds it alone: so either sees what the other one did.
-- +goose StatementBegin
CREATE FUNCTION usage_day_changed(changed BIGINT) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7697253, (changed % 64)::int);
  DELETE FROM usage_days WHERE day = changed;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION usage_changed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  accepted BIGINT;
BEGIN
  IF TG_OP <> 'INSERT' THEN
    PERFORM usage_day_changed(OLD.at_ms / 86400000);
  END IF;
  IF TG_OP <> 'DELETE' THEN
    IF TG_OP = 'INSERT' OR OLD.at_ms <> NEW.at_ms THEN
      PERFORM usage_day_changed(NEW.at_ms / 86400000);
    END IF;
    IF NEW.event_id IS NOT NULL THEN
      SELECT e.accepted_ms / 86400000 INTO accepted FROM inbound_events e WHERE e.id = NEW.event_id;
      IF accepted IS DISTINCT FROM NEW.at_ms / 86400000 THEN
        INSERT INTO usage_spread (event_id) VALUES (NEW.event_id) ON CONFLICT (event_id) DO NOTHING;
        IF accepted IS NOT NULL THEN
          PERFORM usage_day_changed(accepted);
        END IF;
      END IF;
    END IF;
  END IF;
  IF TG_OP <> 'INSERT' AND OLD.event_id IS NOT NULL THEN
    DELETE FROM usage_spread WHERE event_id = OLD.event_id AND NOT EXISTS (SELECT 1 FROM usage_records u WHERE u.event_id = OLD.event_id);
  END IF;
  RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER usage_days_changed
  AFTER INSERT OR DELETE OR UPDATE OF event_id, conversation_id, codebase_id, actor, ai_assistant_type, model, input_tokens, output_tokens, cost_micros, at_ms ON usage_records
  FOR EACH ROW EXECUTE FUNCTION usage_changed();

-- What cannot be looked up any more may have been used on any day. Most events have no usage.
-- +goose StatementBegin
CREATE FUNCTION usage_event_deleted() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM usage_records u WHERE u.event_id = OLD.id) THEN
    INSERT INTO usage_spread (event_id) VALUES (OLD.id) ON CONFLICT (event_id) DO NOTHING;
    PERFORM usage_day_changed(OLD.accepted_ms / 86400000);
  END IF;
  RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER usage_days_event_deleted AFTER DELETE ON inbound_events
  FOR EACH ROW EXECUTE FUNCTION usage_event_deleted();
