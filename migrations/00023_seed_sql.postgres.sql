-- 00023, works with binaries from 00001: SQL of seed 004 as its users write it

-- +goose Up
-- message_json is a stored text as JSONB: NULL stays NULL, what JSONB cannot hold
-- (the character NUL) is replaced, and what is no JSON is a string.
-- +goose StatementBegin
CREATE FUNCTION message_json(p_text TEXT) RETURNS JSONB LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
  RETURN p_text::jsonb;
EXCEPTION WHEN data_exception OR untranslatable_character THEN
  BEGIN
    RETURN regexp_replace(p_text, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')::jsonb;
  EXCEPTION WHEN data_exception OR untranslatable_character THEN
    RETURN to_jsonb(p_text);
  END;
END
$$;
-- +goose StatementEnd

-- Views and functions whose columns change their types have to be made again.
DROP FUNCTION get_messages_optimized(UUID, TEXT, BOOLEAN, INTEGER, INTEGER);
DROP VIEW message;
DROP VIEW agent_iterations;

-- Seed 004's message. Ours belong to conversations and not to profiles: when a
-- profile is deleted its messages stay, with agent_id NULL, where the seed deletes
-- them. A thread is a conversation; a checkpoint is the state that /undo goes back
-- to.
CREATE VIEW message AS
SELECT
  m.id,
  s.agent_id,
  m.kind AS event,
  m.run_id,
  CAST(s.conversation_id AS TEXT) AS thread_id,
  (SELECT CAST(c.event_id AS TEXT) FROM checkpoints c
    WHERE c.session_id = m.session_id AND c.seq <= m.seq ORDER BY c.seq DESC LIMIT 1) AS checkpoint_id,
  m.role AS "from",
  m.content,
  CASE WHEN m.kind IN ('tool_call', 'tool_result') THEN message_json(m.data_json) END AS tools,
  (SELECT jsonb_build_object('number', p.number, 'version', p.version, 'state', p.state, 'goal', p.goal) FROM plans p
    WHERE p.session_id = m.session_id AND CAST(p.event_id AS TEXT) = m.run_id ORDER BY p.number DESC, p.version DESC LIMIT 1) AS plan,
  message_json(NULLIF(m.provider_metadata, '')) AS metadata,
  to_timestamp(m.created_at) AS "timestamp"
FROM agent_messages m
JOIN remote_agent_sessions s ON s.id = m.session_id;

-- Seed 004's processing cycles of agents: here, what was used step by step.
CREATE VIEW agent_iterations AS
SELECT
  u.id,
  jsonb_build_object('agent_id', s.agent_id, 'session_id', u.session_id, 'run_id', u.event_id, 'actor', u.actor, 'model', u.model,
    'input_tokens', u.input_tokens, 'output_tokens', u.output_tokens, 'cost_micros', u.cost_micros) AS data,
  to_timestamp(u.at_ms / 1000.0) AS created_at
FROM usage_records u
JOIN remote_agent_sessions s ON s.id = u.session_id
WHERE s.agent_id IS NOT NULL;

-- Seed 004's get_messages_optimized: rows of the view message. They are in the order
-- of their sessions and, within a session, of their numbers, and never by time alone,
-- so that pages neither overlap nor leave a row out. p_agent_id is the profile that
-- the sessions have; NULL are the sessions without one. A p_thread_id that is no
-- conversation has no rows. p_limit NULL is all rows. Of a session that begins
-- before the page and ends behind it, no more is read than the page and what is
-- between its edge and p_offset; those before it are counted by index, 200 at once.
-- +goose StatementBegin
CREATE FUNCTION get_messages_optimized(
  p_agent_id UUID, p_thread_id TEXT, p_order_desc BOOLEAN DEFAULT FALSE, p_limit INTEGER DEFAULT 100, p_offset INTEGER DEFAULT 0
) RETURNS SETOF message LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  backward CONSTANT BOOLEAN := COALESCE(p_order_desc, FALSE);
  most CONSTANT INTEGER := 100000;
  batch CONSTANT INTEGER := 200;
  left_over INTEGER := p_limit;
  skipped BIGINT := COALESCE(p_offset, 0);
  among UUID[];
  session UUID;
  place INTEGER := 1;
  reached BIGINT;
  passed BIGINT;
  n BIGINT;
BEGIN
  IF p_limit < 0 OR p_limit > most THEN
    RAISE EXCEPTION 'p_limit is from 0 to %, or NULL for all, not %', most, p_limit USING ERRCODE = '22023';
  ELSIF p_offset < 0 THEN
    RAISE EXCEPTION 'p_offset is 0 or more, not %', p_offset USING ERRCODE = '22023';
  ELSIF p_thread_id IS NULL OR p_thread_id !~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN
    RETURN;
  END IF;
  IF backward THEN
    among := ARRAY(
      SELECT s.id FROM remote_agent_sessions s WHERE s.conversation_id = CAST(p_thread_id AS UUID)
      AND s.agent_id IS NOT DISTINCT FROM p_agent_id ORDER BY s.started_at DESC, s.id DESC);
  ELSE
    among := ARRAY(
      SELECT s.id FROM remote_agent_sessions s WHERE s.conversation_id = CAST(p_thread_id AS UUID)
      AND s.agent_id IS NOT DISTINCT FROM p_agent_id ORDER BY s.started_at, s.id);
  END IF;
  WHILE place <= cardinality(among) AND left_over IS DISTINCT FROM 0 LOOP
    session := among[place];
    IF backward THEN
      RETURN QUERY SELECT v.* FROM (
        SELECT m.seq, m.part FROM agent_messages m WHERE m.session_id = session ORDER BY m.seq DESC, m.part DESC LIMIT left_over OFFSET skipped
      ) page JOIN agent_messages a ON a.session_id = session AND a.seq = page.seq AND a.part = page.part JOIN message v ON v.id = a.id ORDER BY page.seq DESC, page.part DESC;
    ELSE
      RETURN QUERY SELECT v.* FROM (
        SELECT m.seq, m.part FROM agent_messages m WHERE m.session_id = session ORDER BY m.seq, m.part LIMIT left_over OFFSET skipped
      ) page JOIN agent_messages a ON a.session_id = session AND a.seq = page.seq AND a.part = page.part JOIN message v ON v.id = a.id ORDER BY page.seq, page.part;
    END IF;
    GET DIAGNOSTICS n = ROW_COUNT;
    IF n = 0 AND skipped > 0 THEN -- the page is in a session behind this one
      SELECT min(w.k) FILTER (WHERE w.upto > skipped), COALESCE(max(w.upto) FILTER (WHERE w.upto <= skipped), 0), count(*) INTO reached, passed, n FROM (
        SELECT o.k, sum(o.n) OVER (ORDER BY o.k) AS upto FROM (
          SELECT u.k, (SELECT count(*) FROM (
            SELECT FROM agent_messages m WHERE m.session_id = u.id ORDER BY m.seq, m.part LIMIT skipped + 1) x) AS n
          FROM unnest(among[place : place + batch - 1]) WITH ORDINALITY AS u(id, k)) o) w;
      skipped := skipped - passed;
      place := place + COALESCE(reached - 1, n);
    ELSE
      left_over := left_over - n;
      skipped := 0;
      place := place + 1;
    END IF;
  END LOOP;
END
$$;
-- +goose StatementEnd

-- Listings leave messages of the role system out without looking at the others.
CREATE INDEX idx_agent_messages_system
  ON agent_messages(session_id, seq) WHERE role = 'system';

-- Seed 004's composite types. The columns are JSONB, which both databases have; a
-- cast makes either of the other: SELECT (memory::memory).enabled FROM agents. A
-- type with such a name that is there already is left as it is.
-- +goose StatementBegin
DO $$
DECLARE
  made RECORD;
BEGIN
  FOR made IN VALUES
    ('memory', 'enabled BOOLEAN, short_term_memory_size INTEGER, memory_size INTEGER'),
    ('rag', 'enabled BOOLEAN, embedding_model TEXT'),
    ('model', 'provider TEXT, model_name TEXT, description TEXT')
  LOOP
    CONTINUE WHEN to_regtype(made.column1) IS NOT NULL;
    EXECUTE format('CREATE TYPE %I AS (%s)', made.column1, made.column2);
    EXECUTE format('CREATE FUNCTION %I(p_json JSONB) RETURNS %I LANGUAGE sql STABLE STRICT SET search_path FROM CURRENT AS
      ''SELECT jsonb_populate_record(NULL::%I, p_json)''', made.column1 || '_of_json', made.column1, made.column1);
    EXECUTE format('CREATE FUNCTION %I(p_row %I) RETURNS JSONB LANGUAGE sql STABLE STRICT SET search_path FROM CURRENT AS
      ''SELECT to_jsonb(p_row)''', made.column1 || '_to_json', made.column1);
    EXECUTE format('CREATE CAST (jsonb AS %I) WITH FUNCTION %I(jsonb) AS ASSIGNMENT', made.column1, made.column1 || '_of_json');
    EXECUTE format('CREATE CAST (%I AS jsonb) WITH FUNCTION %I(%I) AS ASSIGNMENT', made.column1, made.column1 || '_to_json', made.column1);
  END LOOP;
END
$$;
-- +goose StatementEnd

ALTER TABLE episodic_memories ALTER COLUMN expires_at SET DEFAULT (CURRENT_TIMESTAMP + INTERVAL '30 days');

-- Seed 004's users insert into its tables, too, with its columns alone. A row without
-- a number gets what the program would have given it: the person, a number and the
-- hash of its text. An embedding may be written as in the seed, '[0.1, ...]'. Whoever
-- has memory switched off is refused, as everywhere.
-- +goose StatementBegin
CREATE FUNCTION memory_row_completed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  body TEXT;
  numbers REAL[];
BEGIN
  NEW.user_id := COALESCE((SELECT a.user_id FROM memory_accounts a WHERE a.account = NEW.user_id), NEW.user_id);
  IF NEW.user_id NOT LIKE 'person/%' THEN -- those are made by linking only
    INSERT INTO memory_people (user_id) VALUES (NEW.user_id) ON CONFLICT (user_id) DO NOTHING;
  END IF;
  UPDATE memory_people SET seq = seq + 1 WHERE user_id = NEW.user_id AND enabled RETURNING seq INTO NEW.seq;
  IF NEW.seq IS NULL THEN
    RAISE EXCEPTION 'memory is off for %', NEW.user_id USING ERRCODE = '55000', HINT = 'They switch it on with /memory on.';
  ELSIF EXISTS (SELECT 1 FROM memory_accounts a WHERE a.account = NEW.user_id) THEN
    RAISE EXCEPTION '% was linked just now; try again', NEW.user_id USING ERRCODE = '40001';
  END IF;
  IF TG_TABLE_NAME = 'semantic_memories' THEN
    NEW.fact := btrim(regexp_replace(NEW.fact, '\s+', ' ', 'g'));
    body := NEW.fact;
  ELSE
    NEW.content := btrim(regexp_replace(NEW.content, '\s+', ' ', 'g'));
    body := NEW.content;
  END IF;
  IF body = '' OR length(body) > 2000 THEN
    RAISE EXCEPTION 'a memory has from 1 to 2000 characters' USING ERRCODE = '22023';
  END IF;
  NEW.content_hash := COALESCE(NEW.content_hash, encode(sha256(convert_to(rtrim(lower(body), '.!。！ '), 'UTF8')), 'hex'));
  IF encode(NEW.embedding, 'escape') ~ '^\[[-+0-9.eE, ]+\]$' THEN
    numbers := string_to_array(btrim(encode(NEW.embedding, 'escape'), '[] '), ',')::real[];
    IF cardinality(numbers) <> 384 THEN
      RAISE EXCEPTION 'an embedding has 384 numbers, not %', cardinality(numbers) USING ERRCODE = '22000';
    END IF;
    NEW.embedding := (
      SELECT string_agg(substring(f FROM 4 FOR 1) || substring(f FROM 3 FOR 1) || substring(f FROM 2 FOR 1) || substring(f FROM 1 FOR 1), ''::bytea ORDER BY i)
      FROM (SELECT float4send(x) AS f, i FROM unnest(numbers) WITH ORDINALITY AS u(x, i)) n);
  END IF;
  IF NEW.embedding IS NOT NULL AND NEW.embedding_model = '' THEN
    NEW.embedding_model := COALESCE(NULLIF(current_setting('bot.embedding_model', true), ''),
      (SELECT m.embedding_model FROM semantic_memories m WHERE m.embedding_model <> '' ORDER BY m.id DESC LIMIT 1),
      (SELECT m.embedding_model FROM episodic_memories m WHERE m.embedding_model <> '' ORDER BY m.id DESC LIMIT 1), 'sql');
  END IF;
  RETURN NEW;
END
$$;
-- +goose StatementEnd

-- By its name it comes before the triggers of 00022, which go by the embedding.
CREATE TRIGGER semantic_completed BEFORE INSERT ON semantic_memories
  FOR EACH ROW WHEN (NEW.seq IS NULL) EXECUTE FUNCTION memory_row_completed();
CREATE TRIGGER episodic_completed BEFORE INSERT ON episodic_memories
  FOR EACH ROW WHEN (NEW.seq IS NULL) EXECUTE FUNCTION memory_row_completed();
