-- 00018, works with binaries from 00001: messages of an agent and a thread, page by page

-- +goose Up

-- Seed 004's get_messages_optimized: rows of the view message. They are in the order
-- of their sessions and, within a session, of their numbers, and never by time alone,
-- so that pages neither overlap nor leave a row out. p_agent_id is the profile that
-- the sessions have; NULL are the sessions without one. A p_thread_id that is no
-- conversation has no rows. Without p_limit it is all rows. Of a session that begins
-- before the page and ends behind it, no more is read than the page and what is
-- between its edge and p_offset.
-- +goose StatementBegin
CREATE FUNCTION get_messages_optimized(
  p_agent_id UUID, p_thread_id TEXT, p_order_desc BOOLEAN DEFAULT FALSE, p_limit INTEGER DEFAULT NULL, p_offset INTEGER DEFAULT 0
) RETURNS SETOF message LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET plan_cache_mode = force_custom_plan AS $$
DECLARE
  backward CONSTANT BOOLEAN := COALESCE(p_order_desc, FALSE);
  most CONSTANT INTEGER := 100000;
  left_over INTEGER := p_limit;
  skipped BIGINT := COALESCE(p_offset, 0);
  among UUID[];
  session UUID;
  n BIGINT;
BEGIN
  IF p_limit < 0 OR p_limit > most THEN
    RAISE EXCEPTION 'p_limit is from 0 to %, or NULL for all, not %', most, p_limit USING ERRCODE = '22023';
  ELSIF p_offset < 0 THEN
    RAISE EXCEPTION 'p_offset is 0 or more, not %', p_offset USING ERRCODE = '22023';
  ELSIF p_thread_id IS NULL OR p_thread_id !~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN
    RETURN;
  END IF;
  among := ARRAY(
    SELECT s.id FROM remote_agent_sessions s
    WHERE s.conversation_id = CAST(p_thread_id AS UUID) AND s.agent_id IS NOT DISTINCT FROM p_agent_id ORDER BY s.started_at, s.id);
  FOR i IN 1 .. cardinality(among) LOOP
    EXIT WHEN left_over = 0;
    session := among[CASE WHEN backward THEN cardinality(among) + 1 - i ELSE i END];
    IF backward THEN
      RETURN QUERY SELECT v.* FROM (
        SELECT m.id, m.seq, m.part FROM agent_messages m WHERE m.session_id = session ORDER BY m.seq DESC, m.part DESC LIMIT left_over OFFSET skipped
      ) page JOIN message v ON v.id = page.id ORDER BY page.seq DESC, page.part DESC;
    ELSE
      RETURN QUERY SELECT v.* FROM (
        SELECT m.id, m.seq, m.part FROM agent_messages m WHERE m.session_id = session ORDER BY m.seq, m.part LIMIT left_over OFFSET skipped
      ) page JOIN message v ON v.id = page.id ORDER BY page.seq, page.part;
    END IF;
    GET DIAGNOSTICS n = ROW_COUNT;
    IF n = 0 AND skipped > 0 THEN
      SELECT skipped - count(*) INTO skipped FROM agent_messages m WHERE m.session_id = session;
    ELSE
      left_over := left_over - n;
      skipped := 0;
    END IF;
  END LOOP;
END
$$;
-- +goose StatementEnd
