-- version 45
SET LOCAL check_function_bodies = off;
CREATE TYPE memory AS (
	enabled boolean,
	short_term_memory_size integer,
	memory_size integer
);
CREATE TYPE model AS (
	provider text,
	model_name text,
	description text
);
CREATE TYPE rag AS (
	enabled boolean,
	embedding_model text
);
CREATE FUNCTION memory_of_json(p_json jsonb) RETURNS memory
    LANGUAGE sql STABLE STRICT
    SET search_path FROM CURRENT
    AS $$SELECT jsonb_populate_record(NULL::memory, p_json)$$;
CREATE CAST (jsonb AS memory) WITH FUNCTION memory_of_json(jsonb) AS ASSIGNMENT;
CREATE FUNCTION model_of_json(p_json jsonb) RETURNS model
    LANGUAGE sql STABLE STRICT
    SET search_path FROM CURRENT
    AS $$SELECT jsonb_populate_record(NULL::model, p_json)$$;
CREATE CAST (jsonb AS model) WITH FUNCTION model_of_json(jsonb) AS ASSIGNMENT;
CREATE FUNCTION rag_of_json(p_json jsonb) RETURNS rag
    LANGUAGE sql STABLE STRICT
    SET search_path FROM CURRENT
    AS $$SELECT jsonb_populate_record(NULL::rag, p_json)$$;
CREATE CAST (jsonb AS rag) WITH FUNCTION rag_of_json(jsonb) AS ASSIGNMENT;
CREATE FUNCTION memory_to_json(p_row memory) RETURNS jsonb
    LANGUAGE sql STABLE STRICT
    SET search_path FROM CURRENT
    AS $$SELECT to_jsonb(p_row)$$;
CREATE CAST (memory AS jsonb) WITH FUNCTION memory_to_json(memory) AS ASSIGNMENT;
CREATE FUNCTION model_to_json(p_row model) RETURNS jsonb
    LANGUAGE sql STABLE STRICT
    SET search_path FROM CURRENT
    AS $$SELECT to_jsonb(p_row)$$;
CREATE CAST (model AS jsonb) WITH FUNCTION model_to_json(model) AS ASSIGNMENT;
CREATE FUNCTION rag_to_json(p_row rag) RETURNS jsonb
    LANGUAGE sql STABLE STRICT
    SET search_path FROM CURRENT
    AS $$SELECT to_jsonb(p_row)$$;
CREATE CAST (rag AS jsonb) WITH FUNCTION rag_to_json(rag) AS ASSIGNMENT;
CREATE FUNCTION agent_message_words(content text) RETURNS tsvector
    LANGUAGE plpgsql IMMUTABLE STRICT COST 10000 PARALLEL SAFE
    AS $_$
DECLARE
  said TEXT := pg_catalog."left"(content, 100000);
  unspaced CONSTANT TEXT := '[\u4E00-\u9FFF\u3041-\u30FA\u30FC-\u30FF\u0E01-\u0EFF\u1000-\u109F\u1780-\u17FF\u3005-\u3007\u31F0-\u31FF\u3400-\u4DBF\uF900-\uFAFF\uFF66-\uFF9F\U00020000-\U0003FFFF]';
  pairs TEXT[];
BEGIN
  IF pg_catalog.getdatabaseencoding() = 'SQL_ASCII' THEN
    RETURN pg_catalog.to_tsvector('pg_catalog.simple'::pg_catalog.regconfig, pg_catalog.translate(said,
      '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', '                                '));
  END IF;
  IF octet_length(said) > length(said) THEN
    said := replace(replace(replace(replace(replace(replace(replace(replace(translate(normalize(said, NFD), 'łŁøØđĐðÐı', 'llooddddi'), 'ß', 'ss'), 'ẞ', 'ss'), 'æ', 'ae'), 'Æ', 'ae'), 'œ', 'oe'), 'Œ', 'oe'), 'þ', 'th'), 'Þ', 'th');
    said := regexp_replace(normalize(regexp_replace(said, '([A-Za-z])[\u0300-\u036F]+', '\1', 'g'), NFC), '[\u0300-\u036F]+', '', 'g');
  END IF;
  IF said ~ unspaced THEN
    pairs := ARRAY(
      SELECT DISTINCT 'u' || to_hex(ascii(p.letter)) || 'x' || CASE WHEN p.next ~ unspaced THEN to_hex(ascii(p.next)) ELSE '' END
      FROM (
        SELECT u.letter, lead(u.letter) OVER (ORDER BY u.i) AS next
        FROM unnest(string_to_array(said, NULL)) WITH ORDINALITY AS u(letter, i)
      ) p WHERE p.letter ~ unspaced LIMIT 75000);
    said := regexp_replace(said, unspaced || '+', ' ', 'g');
  END IF;
  RETURN pg_catalog.to_tsvector('pg_catalog.simple'::pg_catalog.regconfig, pg_catalog.translate(said,
    '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~“”„‘’‚«»‹›–—…·•¡¿、。，！？：；（）「」『』 ',
    '                                                               ')) || array_to_tsvector(COALESCE(pairs, '{}'));
END
$_$;
CREATE FUNCTION delete_all_agents(p_group text DEFAULT 'default_group'::text) RETURNS TABLE(deleted_count integer, message text)
    LANGUAGE sql
    AS $$
  WITH gone AS (
    DELETE FROM agents a WHERE a."group" = p_group RETURNING a.id
  ), runs AS (
    SELECT e.id FROM inbound_events e JOIN remote_agent_sessions s ON s.id = e.session_id WHERE s.agent_id IN (SELECT g.id FROM gone g)
  ), facts AS (
    DELETE FROM semantic_memories m WHERE m.origin <> 'person' AND m.run_id IN (SELECT r.id FROM runs r)
  ), episodes AS (
    DELETE FROM episodic_memories m WHERE m.origin <> 'person' AND m.run_id IN (SELECT r.id FROM runs r)
  )
  SELECT count(*)::integer, format('Deleted %s agents of the group %s', count(*), p_group) FROM gone
$$;
CREATE FUNCTION message_json(p_text text) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
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
CREATE TABLE agents (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name character varying(63) NOT NULL,
    "group" character varying(63) DEFAULT 'default_group'::character varying NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    lore jsonb DEFAULT '[]'::jsonb NOT NULL,
    objectives jsonb DEFAULT '[]'::jsonb NOT NULL,
    knowledge jsonb DEFAULT '[]'::jsonb NOT NULL,
    system_prompt text DEFAULT ''::text NOT NULL,
    "interval" bigint DEFAULT 0 NOT NULL,
    plugins jsonb DEFAULT '[]'::jsonb NOT NULL,
    memory jsonb DEFAULT '{"enabled": true, "memory_size": 0, "short_term_memory_size": 0}'::jsonb NOT NULL,
    rag jsonb DEFAULT '{"enabled": true, "embedding_model": ""}'::jsonb NOT NULL,
    mode character varying(50) DEFAULT 'interactive'::character varying NOT NULL,
    max_iterations bigint DEFAULT 15 NOT NULL,
    mcp_servers jsonb DEFAULT '{}'::jsonb NOT NULL,
    avatar_image bytea,
    avatar_mime_type character varying(50) DEFAULT ''::character varying NOT NULL,
    model_tier character varying(20) DEFAULT ''::character varying NOT NULL,
    model character varying(100) DEFAULT ''::character varying NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    updated_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    CONSTRAINT agents_interval_check CHECK (("interval" >= 0)),
    CONSTRAINT agents_max_iterations_check CHECK ((max_iterations > 0)),
    CONSTRAINT agents_group_name_key UNIQUE ("group", name),
    CONSTRAINT agents_pkey PRIMARY KEY (id)
);
CREATE TABLE remote_agent_codebases (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name character varying(255) NOT NULL,
    repository_url character varying(500),
    default_cwd character varying(500) NOT NULL,
    ai_assistant_type character varying(20) DEFAULT 'claude'::character varying NOT NULL,
    commands jsonb DEFAULT '{}'::jsonb,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP,
    updated_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP,
    CONSTRAINT remote_agent_codebases_pkey PRIMARY KEY (id)
);
CREATE TABLE remote_agent_conversations (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    platform_type character varying(20) NOT NULL,
    platform_conversation_id character varying(255) NOT NULL,
    codebase_id uuid,
    cwd character varying(500),
    ai_assistant_type character varying(20) DEFAULT 'claude'::character varying NOT NULL,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP,
    updated_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP,
    inbox_seq bigint DEFAULT 0 NOT NULL,
    stop_seq bigint DEFAULT 0 NOT NULL,
    delivery_seq bigint DEFAULT 0 NOT NULL,
    lease_owner character varying(255),
    lease_until bigint DEFAULT 0 NOT NULL,
    lease_epoch bigint DEFAULT 0 NOT NULL,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    agent_id uuid,
    CONSTRAINT remote_agent_conversations_pkey PRIMARY KEY (id),
    CONSTRAINT remote_agent_conversations_platform_type_platform_conversat_key UNIQUE (platform_type, platform_conversation_id),
    CONSTRAINT remote_agent_conversations_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES agents(id) ON DELETE SET NULL,
    CONSTRAINT remote_agent_conversations_codebase_id_fkey FOREIGN KEY (codebase_id) REFERENCES remote_agent_codebases(id)
);
CREATE TABLE remote_agent_sessions (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    conversation_id uuid NOT NULL,
    codebase_id uuid,
    ai_assistant_type character varying(20) NOT NULL,
    assistant_session_id character varying(255),
    active boolean DEFAULT true NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb,
    started_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP,
    ended_at timestamp with time zone,
    agent_name text DEFAULT ''::text NOT NULL,
    model text DEFAULT ''::text NOT NULL,
    system_prompt text,
    user_prompt text DEFAULT ''::text NOT NULL,
    config text,
    status text DEFAULT 'running'::text NOT NULL,
    result text,
    error text,
    input_tokens bigint DEFAULT 0 NOT NULL,
    output_tokens bigint DEFAULT 0 NOT NULL,
    last_seq bigint DEFAULT 0 NOT NULL,
    parent_session_id uuid,
    agent_id uuid,
    CONSTRAINT remote_agent_sessions_status_check CHECK ((status = ANY (ARRAY['running'::text, 'completed'::text, 'failed'::text]))),
    CONSTRAINT remote_agent_sessions_pkey PRIMARY KEY (id),
    CONSTRAINT remote_agent_sessions_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES agents(id) ON DELETE SET NULL,
    CONSTRAINT remote_agent_sessions_codebase_id_fkey FOREIGN KEY (codebase_id) REFERENCES remote_agent_codebases(id),
    CONSTRAINT remote_agent_sessions_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
    CONSTRAINT remote_agent_sessions_parent_session_id_fkey FOREIGN KEY (parent_session_id) REFERENCES remote_agent_sessions(id) ON DELETE SET NULL
);
ALTER TABLE ONLY remote_agent_sessions ALTER COLUMN metadata SET STATISTICS 0,
    ALTER COLUMN system_prompt SET STATISTICS 0,
    ALTER COLUMN user_prompt SET STATISTICS 0,
    ALTER COLUMN config SET STATISTICS 0,
    ALTER COLUMN result SET STATISTICS 0,
    ALTER COLUMN error SET STATISTICS 0;
CREATE TABLE agent_messages (
    id bigint GENERATED ALWAYS AS IDENTITY,
    session_id uuid NOT NULL,
    role text NOT NULL,
    content text NOT NULL,
    created_at bigint NOT NULL,
    seq bigint NOT NULL,
    part bigint DEFAULT 0 NOT NULL,
    kind text NOT NULL,
    data_json text,
    provider_metadata text,
    run_id character varying(64) DEFAULT ''::character varying NOT NULL,
    undone boolean DEFAULT false NOT NULL,
    CONSTRAINT agent_messages_role_check CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text, 'system'::text, 'tool'::text]))),
    CONSTRAINT agent_messages_pkey PRIMARY KEY (id),
    CONSTRAINT agent_messages_session_id_seq_part_key UNIQUE (session_id, seq, part),
    CONSTRAINT agent_messages_session_id_fkey FOREIGN KEY (session_id) REFERENCES remote_agent_sessions(id) ON DELETE CASCADE
);
ALTER TABLE ONLY agent_messages ALTER COLUMN content SET STATISTICS 0,
    ALTER COLUMN data_json SET STATISTICS 0,
    ALTER COLUMN provider_metadata SET STATISTICS 0;
CREATE TABLE inbound_events (
    id uuid NOT NULL,
    platform_type character varying(20) NOT NULL,
    account character varying(255) DEFAULT ''::character varying NOT NULL,
    event_id character varying(255) NOT NULL,
    conversation_id uuid,
    seq bigint DEFAULT 0 NOT NULL,
    lane text DEFAULT 'turn'::text NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    attempts bigint DEFAULT 0 NOT NULL,
    next_ms bigint DEFAULT 0 NOT NULL,
    session_id uuid,
    message_id character varying(255) DEFAULT ''::character varying NOT NULL,
    error text,
    data text,
    raw bytea,
    accepted_ms bigint NOT NULL,
    sender character varying(255) DEFAULT ''::character varying NOT NULL,
    preparation text,
    checkpoint_seq bigint,
    checkpoint_ref character varying(255),
    checkpoint_undone boolean DEFAULT false NOT NULL,
    CONSTRAINT inbound_events_lane_check CHECK ((lane = ANY (ARRAY['turn'::text, 'control'::text]))),
    CONSTRAINT inbound_events_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'running'::text, 'done'::text, 'failed'::text, 'stopped'::text, 'refused'::text, 'ignored'::text, 'raw'::text]))),
    CONSTRAINT inbound_events_pkey PRIMARY KEY (id),
    CONSTRAINT inbound_events_platform_type_account_event_id_key UNIQUE (platform_type, account, event_id),
    CONSTRAINT inbound_events_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES remote_agent_conversations(id) ON DELETE SET NULL
);
ALTER TABLE ONLY inbound_events ALTER COLUMN error SET STATISTICS 0,
    ALTER COLUMN data SET STATISTICS 0;
CREATE TABLE plan_numbers (
    number bigint GENERATED ALWAYS AS IDENTITY,
    conversation_id uuid NOT NULL,
    CONSTRAINT plan_numbers_pkey PRIMARY KEY (number),
    CONSTRAINT plan_numbers_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES remote_agent_conversations(id) ON DELETE CASCADE
);
CREATE TABLE plans (
    id uuid NOT NULL,
    number bigint NOT NULL,
    version bigint NOT NULL,
    conversation_id uuid NOT NULL,
    session_id uuid,
    event_id uuid,
    goal text DEFAULT ''::text NOT NULL,
    body text NOT NULL,
    sha256 character varying(64) NOT NULL,
    author character varying(300) DEFAULT ''::character varying NOT NULL,
    requester character varying(300) DEFAULT ''::character varying NOT NULL,
    state text DEFAULT 'proposed'::text NOT NULL,
    head character varying(64) DEFAULT ''::character varying NOT NULL,
    delivery_id character varying(64) DEFAULT ''::character varying NOT NULL,
    decided_by character varying(300) DEFAULT ''::character varying NOT NULL,
    decided_ms bigint DEFAULT 0 NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    created_ms bigint NOT NULL,
    expires_ms bigint NOT NULL,
    CONSTRAINT plans_sha256_check CHECK ((length((sha256)::text) = 64)),
    CONSTRAINT plans_state_check CHECK ((state = ANY (ARRAY['proposed'::text, 'approved'::text, 'rejected'::text, 'expired'::text, 'superseded'::text, 'executing'::text, 'done'::text]))),
    CONSTRAINT plans_version_check CHECK ((version > 0)),
    CONSTRAINT plans_number_version_key UNIQUE (number, version),
    CONSTRAINT plans_pkey PRIMARY KEY (id),
    CONSTRAINT plans_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
    CONSTRAINT plans_event_id_fkey FOREIGN KEY (event_id) REFERENCES inbound_events(id) ON DELETE SET NULL,
    CONSTRAINT plans_number_fkey FOREIGN KEY (number) REFERENCES plan_numbers(number) ON DELETE CASCADE,
    CONSTRAINT plans_session_id_fkey FOREIGN KEY (session_id) REFERENCES remote_agent_sessions(id) ON DELETE SET NULL
);
ALTER TABLE ONLY plans ALTER COLUMN goal SET STATISTICS 0,
    ALTER COLUMN body SET STATISTICS 0,
    ALTER COLUMN note SET STATISTICS 0;
CREATE TABLE usage_records (
    id bigint GENERATED ALWAYS AS IDENTITY,
    event_id uuid,
    conversation_id uuid,
    session_id uuid,
    codebase_id uuid,
    actor character varying(300) NOT NULL,
    ai_assistant_type character varying(20) NOT NULL,
    model text DEFAULT ''::text NOT NULL,
    input_tokens bigint DEFAULT 0 NOT NULL,
    output_tokens bigint DEFAULT 0 NOT NULL,
    cached_tokens bigint DEFAULT 0 NOT NULL,
    written_tokens bigint DEFAULT 0 NOT NULL,
    cost_micros bigint,
    at_ms bigint NOT NULL,
    CONSTRAINT usage_records_pkey PRIMARY KEY (id),
    CONSTRAINT usage_records_codebase_id_fkey FOREIGN KEY (codebase_id) REFERENCES remote_agent_codebases(id) ON DELETE SET NULL,
    CONSTRAINT usage_records_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES remote_agent_conversations(id) ON DELETE SET NULL
);
CREATE TABLE agent_runs (
    session_id uuid NOT NULL,
    number bigint NOT NULL,
    entry_id uuid NOT NULL,
    status text DEFAULT 'running'::text NOT NULL,
    waiting boolean DEFAULT false NOT NULL,
    started_ms bigint NOT NULL,
    finished_ms bigint,
    duration_ms bigint,
    model text DEFAULT ''::text NOT NULL,
    input_tokens bigint DEFAULT 0 NOT NULL,
    output_tokens bigint DEFAULT 0 NOT NULL,
    cost_micros bigint,
    error text,
    CONSTRAINT agent_runs_status_check CHECK ((status = ANY (ARRAY['running'::text, 'completed'::text, 'failed'::text, 'stopped'::text, 'interrupted'::text]))),
    CONSTRAINT agent_runs_pkey PRIMARY KEY (session_id, number),
    CONSTRAINT agent_runs_session_id_fkey FOREIGN KEY (session_id) REFERENCES remote_agent_sessions(id) ON DELETE CASCADE
);
ALTER TABLE ONLY agent_runs ALTER COLUMN error SET STATISTICS 0;
CREATE TABLE agent_schedules (
    id bigint GENERATED ALWAYS AS IDENTITY,
    agent_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    created_by character varying(300) NOT NULL,
    origin text NOT NULL,
    event_id uuid,
    runs bigint DEFAULT 0 NOT NULL,
    last_ms bigint DEFAULT 0 NOT NULL,
    next_ms bigint NOT NULL,
    created_ms bigint NOT NULL,
    CONSTRAINT agent_schedules_conversation_id_key UNIQUE (conversation_id),
    CONSTRAINT agent_schedules_pkey PRIMARY KEY (id),
    CONSTRAINT agent_schedules_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES agents(id) ON DELETE CASCADE,
    CONSTRAINT agent_schedules_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
    CONSTRAINT agent_schedules_event_id_fkey FOREIGN KEY (event_id) REFERENCES inbound_events(id) ON DELETE SET NULL
);
ALTER TABLE ONLY agent_schedules ALTER COLUMN origin SET STATISTICS 0;
CREATE TABLE agent_tool_calls (
    id bigint GENERATED ALWAYS AS IDENTITY,
    session_id uuid NOT NULL,
    message_id bigint,
    tool_call_id text NOT NULL,
    tool_name text NOT NULL,
    request text NOT NULL,
    response text,
    status text DEFAULT 'pending'::text NOT NULL,
    created_at bigint NOT NULL,
    completed_at bigint,
    execution_time_ms bigint,
    error_details text,
    executing_ms bigint,
    CONSTRAINT agent_tool_calls_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'executing'::text, 'completed'::text, 'failed'::text]))),
    CONSTRAINT agent_tool_calls_pkey PRIMARY KEY (id),
    CONSTRAINT agent_tool_calls_session_id_tool_call_id_key UNIQUE (session_id, tool_call_id),
    CONSTRAINT agent_tool_calls_message_id_fkey FOREIGN KEY (message_id) REFERENCES agent_messages(id) ON DELETE SET NULL,
    CONSTRAINT agent_tool_calls_session_id_fkey FOREIGN KEY (session_id) REFERENCES remote_agent_sessions(id) ON DELETE CASCADE
);
ALTER TABLE ONLY agent_tool_calls ALTER COLUMN request SET STATISTICS 0,
    ALTER COLUMN response SET STATISTICS 0,
    ALTER COLUMN error_details SET STATISTICS 0;
CREATE TABLE allow_rules (
    id bigint GENERATED ALWAYS AS IDENTITY,
    codebase_id uuid NOT NULL,
    tool_name text NOT NULL,
    rule text NOT NULL,
    created_by character varying(300) NOT NULL,
    created_ms bigint NOT NULL,
    CONSTRAINT allow_rules_codebase_id_tool_name_rule_key UNIQUE (codebase_id, tool_name, rule),
    CONSTRAINT allow_rules_pkey PRIMARY KEY (id),
    CONSTRAINT allow_rules_codebase_id_fkey FOREIGN KEY (codebase_id) REFERENCES remote_agent_codebases(id) ON DELETE CASCADE
);
CREATE TABLE api_keys (
    id character varying(16) NOT NULL,
    name character varying(64) NOT NULL,
    secret_hash character varying(64) NOT NULL,
    scopes character varying(500) NOT NULL,
    created_ms bigint NOT NULL,
    expires_ms bigint DEFAULT 0 NOT NULL,
    revoked_ms bigint DEFAULT 0 NOT NULL,
    last_used_ms bigint DEFAULT 0 NOT NULL,
    CONSTRAINT api_keys_secret_hash_check CHECK ((length((secret_hash)::text) = 64)),
    CONSTRAINT api_keys_pkey PRIMARY KEY (id)
);
CREATE TABLE approvals (
    number bigint GENERATED ALWAYS AS IDENTITY,
    conversation_id uuid NOT NULL,
    session_id uuid,
    event_id uuid,
    codebase_id uuid,
    tool_call_id text NOT NULL,
    tool_name text NOT NULL,
    request text NOT NULL,
    sha256 character varying(64) NOT NULL,
    kind text NOT NULL,
    title text NOT NULL,
    detail text DEFAULT ''::text NOT NULL,
    rule text DEFAULT ''::text NOT NULL,
    requester character varying(300) NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    delivery_id character varying(64) DEFAULT ''::character varying NOT NULL,
    decided_by character varying(300) DEFAULT ''::character varying NOT NULL,
    decided_ms bigint DEFAULT 0 NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    created_ms bigint NOT NULL,
    expires_ms bigint NOT NULL,
    CONSTRAINT approvals_sha256_check CHECK ((length((sha256)::text) = 64)),
    CONSTRAINT approvals_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'allowed'::text, 'denied'::text, 'expired'::text, 'canceled'::text]))),
    CONSTRAINT approvals_pkey PRIMARY KEY (number),
    CONSTRAINT approvals_codebase_id_fkey FOREIGN KEY (codebase_id) REFERENCES remote_agent_codebases(id) ON DELETE SET NULL,
    CONSTRAINT approvals_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
    CONSTRAINT approvals_event_id_fkey FOREIGN KEY (event_id) REFERENCES inbound_events(id) ON DELETE SET NULL,
    CONSTRAINT approvals_session_id_fkey FOREIGN KEY (session_id) REFERENCES remote_agent_sessions(id) ON DELETE SET NULL
);
ALTER TABLE ONLY approvals ALTER COLUMN request SET STATISTICS 0,
    ALTER COLUMN title SET STATISTICS 0,
    ALTER COLUMN detail SET STATISTICS 0,
    ALTER COLUMN rule SET STATISTICS 0,
    ALTER COLUMN note SET STATISTICS 0;
CREATE TABLE audit_head (
    id integer NOT NULL,
    seq bigint DEFAULT 0 NOT NULL,
    hash text DEFAULT ''::text NOT NULL,
    CONSTRAINT audit_head_id_check CHECK ((id = 1)),
    CONSTRAINT audit_head_pkey PRIMARY KEY (id)
);
CREATE TABLE audit_log (
    id bigint GENERATED ALWAYS AS IDENTITY,
    at_ms bigint NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    conversation_id text DEFAULT ''::text NOT NULL,
    target text DEFAULT ''::text NOT NULL,
    detail text DEFAULT ''::text NOT NULL,
    seq bigint,
    hash text DEFAULT ''::text NOT NULL,
    effect text,
    CONSTRAINT audit_log_pkey PRIMARY KEY (id)
);
CREATE TABLE buttons (
    id character varying(40) NOT NULL,
    conversation_id uuid NOT NULL,
    decision text NOT NULL,
    plan_number bigint DEFAULT 0 NOT NULL,
    sha256 character varying(64) DEFAULT ''::character varying NOT NULL,
    expires_ms bigint NOT NULL,
    CONSTRAINT buttons_pkey PRIMARY KEY (id),
    CONSTRAINT buttons_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES remote_agent_conversations(id) ON DELETE CASCADE
);
CREATE UNLOGGED TABLE call_limits (
    account character varying(64) NOT NULL,
    bucket character varying(255) NOT NULL,
    full_us bigint DEFAULT 0 NOT NULL,
    silent_us bigint DEFAULT 0 NOT NULL,
    CONSTRAINT call_limits_pkey PRIMARY KEY (account, bucket)
)
WITH (fillfactor='50');
CREATE TABLE deliveries (
    id character varying(64) NOT NULL,
    conversation_id uuid NOT NULL,
    event_id uuid,
    seq bigint NOT NULL,
    reply_to character varying(255) DEFAULT ''::character varying NOT NULL,
    placeholder text DEFAULT ''::text NOT NULL,
    body text DEFAULT ''::text NOT NULL,
    final boolean DEFAULT false NOT NULL,
    control boolean DEFAULT false NOT NULL,
    message_id character varying(255) DEFAULT ''::character varying NOT NULL,
    state text DEFAULT 'pending'::text NOT NULL,
    attempts bigint DEFAULT 0 NOT NULL,
    next_ms bigint DEFAULT 0 NOT NULL,
    error text DEFAULT ''::text NOT NULL,
    created_ms bigint NOT NULL,
    buttons jsonb DEFAULT '[]'::jsonb NOT NULL,
    only_for character varying(255) DEFAULT ''::character varying NOT NULL,
    file_name character varying(255) DEFAULT ''::character varying NOT NULL,
    file bytea,
    CONSTRAINT deliveries_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'sending'::text, 'placed'::text, 'sent'::text, 'failed'::text]))),
    CONSTRAINT deliveries_conversation_id_seq_key UNIQUE (conversation_id, seq),
    CONSTRAINT deliveries_pkey PRIMARY KEY (id),
    CONSTRAINT deliveries_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
    CONSTRAINT deliveries_event_id_fkey FOREIGN KEY (event_id) REFERENCES inbound_events(id) ON DELETE SET NULL
);
ALTER TABLE ONLY deliveries ALTER COLUMN placeholder SET STATISTICS 0,
    ALTER COLUMN body SET STATISTICS 0,
    ALTER COLUMN buttons SET STATISTICS 0;
CREATE TABLE memory_people (
    user_id character varying(300) NOT NULL,
    enabled boolean DEFAULT true NOT NULL,
    seq bigint DEFAULT 0 NOT NULL,
    embeddings_version bigint DEFAULT (floor((random() * ('140737488355328'::bigint)::double precision)))::bigint NOT NULL,
    CONSTRAINT memory_people_pkey PRIMARY KEY (user_id)
);
CREATE TABLE episodic_memories (
    id bigint GENERATED ALWAYS AS IDENTITY,
    user_id character varying(300) NOT NULL,
    run_id uuid NOT NULL,
    content text NOT NULL,
    embedding bytea,
    sources jsonb DEFAULT '[]'::jsonb NOT NULL,
    access_count bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    updated_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    confidence double precision DEFAULT 1.0 NOT NULL,
    expires_at timestamp with time zone DEFAULT (CURRENT_TIMESTAMP + '30 days'::interval) NOT NULL,
    seq bigint NOT NULL,
    codebase_id uuid,
    origin character varying(20) DEFAULT 'assistant'::character varying NOT NULL,
    content_hash character varying(64) NOT NULL,
    terms text DEFAULT ''::text NOT NULL,
    embedding_model character varying(200) DEFAULT ''::character varying NOT NULL,
    last_key character varying(200) DEFAULT ''::character varying NOT NULL,
    words tsvector GENERATED ALWAYS AS (array_to_tsvector(array_remove(string_to_array(terms, ' '::text), ''::text))) STORED,
    embedding_version bigint DEFAULT 0 NOT NULL,
    nearness bigint,
    CONSTRAINT episodic_memories_confidence_check CHECK (((confidence >= (0)::double precision) AND (confidence <= (10)::double precision))),
    CONSTRAINT episodic_memories_embedding_check CHECK (((embedding IS NULL) OR (length(embedding) = 1536))),
    CONSTRAINT episodic_memories_nearness_check CHECK (((nearness >= 0) AND (nearness <= 1000))),
    CONSTRAINT episodic_memories_origin_check CHECK ((origin IN ('person'::character varying, 'assistant'::character varying, 'learned'::character varying))),
    CONSTRAINT episodic_memories_pkey PRIMARY KEY (id),
    CONSTRAINT episodic_memories_user_id_seq_key UNIQUE (user_id, seq),
    CONSTRAINT episodic_memories_codebase_id_fkey FOREIGN KEY (codebase_id) REFERENCES remote_agent_codebases(id) ON DELETE CASCADE,
    CONSTRAINT episodic_memories_user_id_fkey FOREIGN KEY (user_id) REFERENCES memory_people(user_id) ON DELETE CASCADE
);
ALTER TABLE ONLY episodic_memories ALTER COLUMN content SET STATISTICS 0,
    ALTER COLUMN sources SET STATISTICS 0,
    ALTER COLUMN terms SET STATISTICS 0;
CREATE TABLE files (
    hash character(64) NOT NULL,
    size bigint NOT NULL,
    data bytea,
    used_ms bigint NOT NULL,
    released bigint DEFAULT 0 NOT NULL,
    CONSTRAINT files_pkey PRIMARY KEY (hash)
);
ALTER TABLE ONLY files ALTER COLUMN data SET STATISTICS 0,
    ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE identities (
    platform_type character varying(20) NOT NULL,
    user_id character varying(255) NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    role text DEFAULT 'stranger'::text NOT NULL,
    refused_ms bigint,
    created_ms bigint NOT NULL,
    granted_by text DEFAULT ''::text NOT NULL,
    granted_ms bigint DEFAULT 0 NOT NULL,
    removed_ms bigint DEFAULT 0 NOT NULL,
    reads boolean DEFAULT false NOT NULL,
    CONSTRAINT identities_role_check CHECK ((role = ANY (ARRAY['stranger'::text, 'user'::text, 'owner'::text]))),
    CONSTRAINT identities_pkey PRIMARY KEY (platform_type, user_id)
);
CREATE TABLE link_codes (
    account character varying(300) NOT NULL,
    code_hash character varying(64) NOT NULL,
    conversation_id uuid,
    whispered boolean DEFAULT false NOT NULL,
    expires_ms bigint NOT NULL,
    CONSTRAINT link_codes_code_hash_key UNIQUE (code_hash),
    CONSTRAINT link_codes_pkey PRIMARY KEY (account),
    CONSTRAINT link_codes_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES remote_agent_conversations(id) ON DELETE CASCADE
);
CREATE TABLE link_tries (
    account character varying(300) NOT NULL,
    tries bigint NOT NULL,
    since_ms bigint NOT NULL,
    last_key character varying(200) DEFAULT ''::character varying NOT NULL,
    CONSTRAINT link_tries_pkey PRIMARY KEY (account)
);
CREATE TABLE memory_accounts (
    account character varying(300) NOT NULL,
    user_id character varying(300) NOT NULL,
    conversation_id uuid,
    whispered boolean DEFAULT false NOT NULL,
    last_key character varying(200) DEFAULT ''::character varying NOT NULL,
    linked_ms bigint NOT NULL,
    CONSTRAINT memory_accounts_pkey PRIMARY KEY (account),
    CONSTRAINT memory_accounts_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES remote_agent_conversations(id) ON DELETE SET NULL,
    CONSTRAINT memory_accounts_user_id_fkey FOREIGN KEY (user_id) REFERENCES memory_people(user_id) ON DELETE CASCADE
);
CREATE TABLE memory_lessons (
    entry_id uuid NOT NULL,
    account character varying(300) NOT NULL,
    conversation_id uuid NOT NULL,
    attempts bigint DEFAULT 0 NOT NULL,
    next_ms bigint NOT NULL,
    claim character varying(64) DEFAULT ''::character varying NOT NULL,
    CONSTRAINT memory_lessons_pkey PRIMARY KEY (entry_id),
    CONSTRAINT memory_lessons_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
    CONSTRAINT memory_lessons_entry_id_fkey FOREIGN KEY (entry_id) REFERENCES inbound_events(id) ON DELETE CASCADE
);
CREATE TABLE models_config (
    id bigint GENERATED ALWAYS AS IDENTITY,
    fast jsonb DEFAULT '{}'::jsonb NOT NULL,
    smart jsonb DEFAULT '{}'::jsonb NOT NULL,
    cheap jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT models_config_pkey PRIMARY KEY (id)
);
CREATE TABLE named_leases (
    name character varying(255) NOT NULL,
    owner character varying(255) NOT NULL,
    lease_until bigint NOT NULL,
    CONSTRAINT named_leases_pkey PRIMARY KEY (name)
);
CREATE TABLE owner_codes (
    platform_type character varying(20) NOT NULL,
    code_hash character varying(64) NOT NULL,
    expires_ms bigint NOT NULL,
    CONSTRAINT owner_codes_pkey PRIMARY KEY (platform_type)
);
CREATE TABLE pairings (
    number bigint GENERATED ALWAYS AS IDENTITY,
    platform_type character varying(20) NOT NULL,
    user_id character varying(255) NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    platform_conversation_id character varying(255) NOT NULL,
    code character varying(16) NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    cards text DEFAULT ''::text NOT NULL,
    asked_ms bigint NOT NULL,
    decided_by character varying(300) DEFAULT ''::character varying NOT NULL,
    decided_ms bigint DEFAULT 0 NOT NULL,
    CONSTRAINT pairings_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'allowed'::text, 'denied'::text]))),
    CONSTRAINT pairings_pkey PRIMARY KEY (number)
);
CREATE TABLE platform_cursors (
    name character varying(255) NOT NULL,
    "position" character varying(255) NOT NULL,
    updated_ms bigint NOT NULL,
    CONSTRAINT platform_cursors_pkey PRIMARY KEY (name)
);
CREATE TABLE replicas (
    owner character varying(255) NOT NULL,
    lock_key bigint NOT NULL,
    until_ms bigint NOT NULL,
    joined_us bigint DEFAULT 0 NOT NULL,
    CONSTRAINT replicas_pkey PRIMARY KEY (owner)
);
CREATE TABLE semantic_memories (
    id bigint GENERATED ALWAYS AS IDENTITY,
    user_id character varying(300) NOT NULL,
    run_id uuid NOT NULL,
    fact text NOT NULL,
    embedding bytea,
    confidence double precision DEFAULT 0.5 NOT NULL,
    access_count bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    updated_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    category character varying(50),
    source_events jsonb DEFAULT '[]'::jsonb NOT NULL,
    seq bigint NOT NULL,
    codebase_id uuid,
    origin character varying(20) DEFAULT 'assistant'::character varying NOT NULL,
    content_hash character varying(64) NOT NULL,
    terms text DEFAULT ''::text NOT NULL,
    embedding_model character varying(200) DEFAULT ''::character varying NOT NULL,
    last_key character varying(200) DEFAULT ''::character varying NOT NULL,
    history jsonb DEFAULT '[]'::jsonb NOT NULL,
    words tsvector GENERATED ALWAYS AS (array_to_tsvector(array_remove(string_to_array(terms, ' '::text), ''::text))) STORED,
    embedding_version bigint DEFAULT 0 NOT NULL,
    nearness bigint,
    CONSTRAINT semantic_memories_category_check CHECK ((category IN ('preference'::character varying, 'fact'::character varying, 'skill'::character varying, 'relationship'::character varying))),
    CONSTRAINT semantic_memories_confidence_check CHECK (((confidence >= (0)::double precision) AND (confidence <= (0.99)::double precision))),
    CONSTRAINT semantic_memories_embedding_check CHECK (((embedding IS NULL) OR (length(embedding) = 1536))),
    CONSTRAINT semantic_memories_nearness_check CHECK (((nearness >= 0) AND (nearness <= 1000))),
    CONSTRAINT semantic_memories_origin_check CHECK ((origin IN ('person'::character varying, 'assistant'::character varying, 'learned'::character varying))),
    CONSTRAINT semantic_memories_pkey PRIMARY KEY (id),
    CONSTRAINT semantic_memories_user_id_seq_key UNIQUE (user_id, seq),
    CONSTRAINT semantic_memories_codebase_id_fkey FOREIGN KEY (codebase_id) REFERENCES remote_agent_codebases(id) ON DELETE CASCADE,
    CONSTRAINT semantic_memories_user_id_fkey FOREIGN KEY (user_id) REFERENCES memory_people(user_id) ON DELETE CASCADE
);
ALTER TABLE ONLY semantic_memories ALTER COLUMN fact SET STATISTICS 0,
    ALTER COLUMN source_events SET STATISTICS 0,
    ALTER COLUMN terms SET STATISTICS 0,
    ALTER COLUMN history SET STATISTICS 0;
CREATE TABLE service_state (
    id integer NOT NULL,
    access_seq bigint DEFAULT 0 NOT NULL,
    halted_ms bigint DEFAULT 0 NOT NULL,
    halted_by text DEFAULT ''::text NOT NULL,
    halt_reason text DEFAULT ''::text NOT NULL,
    CONSTRAINT service_state_id_check CHECK ((id = 1)),
    CONSTRAINT service_state_pkey PRIMARY KEY (id)
);
CREATE TABLE sign_in_links (
    token_hash character varying(64) NOT NULL,
    platform_type character varying(20) NOT NULL,
    user_id character varying(255) NOT NULL,
    expires_ms bigint NOT NULL,
    CONSTRAINT sign_in_links_token_hash_check CHECK ((length((token_hash)::text) = 64)),
    CONSTRAINT sign_in_links_pkey PRIMARY KEY (token_hash)
);
CREATE TABLE usage_days (
    day bigint NOT NULL,
    format integer NOT NULL,
    body bytea NOT NULL,
    CONSTRAINT usage_days_pkey PRIMARY KEY (day)
);
ALTER TABLE ONLY usage_days ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE usage_day_parts (
    day bigint NOT NULL,
    part text NOT NULL,
    body bytea NOT NULL,
    CONSTRAINT usage_day_parts_pkey PRIMARY KEY (day, part),
    CONSTRAINT usage_day_parts_day_fkey FOREIGN KEY (day) REFERENCES usage_days(day) ON DELETE CASCADE
);
ALTER TABLE ONLY usage_day_parts ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE usage_spread (
    event_id uuid NOT NULL,
    CONSTRAINT usage_spread_pkey PRIMARY KEY (event_id)
);
CREATE TABLE web_chats (
    id character varying(40) NOT NULL,
    account character varying(300) NOT NULL,
    last_seq bigint DEFAULT 0 NOT NULL,
    changed_ms bigint NOT NULL,
    CONSTRAINT web_chats_pkey PRIMARY KEY (id)
);
CREATE TABLE web_messages (
    id character varying(40) NOT NULL,
    chat_id character varying(40) NOT NULL,
    seq bigint NOT NULL,
    delivery_id character varying(64),
    author character varying(300) DEFAULT ''::character varying NOT NULL,
    body text NOT NULL,
    buttons text DEFAULT '[]'::text NOT NULL,
    mark character varying(20) DEFAULT ''::character varying NOT NULL,
    event text,
    created_ms bigint NOT NULL,
    CONSTRAINT web_messages_pkey PRIMARY KEY (id),
    CONSTRAINT web_messages_chat_id_fkey FOREIGN KEY (chat_id) REFERENCES web_chats(id) ON DELETE CASCADE
);
CREATE TABLE web_files (
    id character varying(40) NOT NULL,
    message_id character varying(40) NOT NULL,
    name character varying(255) NOT NULL,
    media_type character varying(100) NOT NULL,
    size bigint NOT NULL,
    data bytea NOT NULL,
    CONSTRAINT web_files_pkey PRIMARY KEY (id),
    CONSTRAINT web_files_message_id_fkey FOREIGN KEY (message_id) REFERENCES web_messages(id) ON DELETE CASCADE
);
CREATE TABLE web_sessions (
    id character varying(16) NOT NULL,
    token_hash character varying(64) NOT NULL,
    platform_type character varying(20) NOT NULL,
    user_id character varying(255) NOT NULL,
    client character varying(200) DEFAULT ''::character varying NOT NULL,
    created_ms bigint NOT NULL,
    last_used_ms bigint NOT NULL,
    expires_ms bigint NOT NULL,
    revoked_ms bigint DEFAULT 0 NOT NULL,
    CONSTRAINT web_sessions_token_hash_check CHECK ((length((token_hash)::text) = 64)),
    CONSTRAINT web_sessions_pkey PRIMARY KEY (id)
);
CREATE VIEW message AS
 SELECT m.id,
    s.agent_id,
    m.kind AS event,
    m.run_id,
    (s.conversation_id)::text AS thread_id,
    ( SELECT (e.id)::text AS id
           FROM inbound_events e
          WHERE ((e.conversation_id = s.conversation_id) AND (e.seq > 0) AND (e.session_id = m.session_id) AND (e.checkpoint_seq <= m.seq))
          ORDER BY e.seq DESC
         LIMIT 1) AS checkpoint_id,
    m.role AS "from",
    m.content,
        CASE
            WHEN (m.kind = ANY (ARRAY['tool_call'::text, 'tool_result'::text])) THEN message_json(m.data_json)
            ELSE NULL::jsonb
        END AS tools,
    ( SELECT jsonb_build_object('number', p.number, 'version', p.version, 'state', p.state, 'goal', p.goal) AS jsonb_build_object
           FROM plans p
          WHERE ((p.session_id = m.session_id) AND ((p.event_id)::text = (m.run_id)::text))
          ORDER BY p.number DESC, p.version DESC
         LIMIT 1) AS plan,
    message_json(NULLIF(m.provider_metadata, ''::text)) AS metadata,
    to_timestamp((m.created_at)::double precision) AS "timestamp"
   FROM (agent_messages m
     JOIN remote_agent_sessions s ON ((s.id = m.session_id)));
CREATE FUNCTION get_messages_optimized(p_agent_id uuid, p_thread_id text, p_order_desc boolean DEFAULT false, p_limit integer DEFAULT 100, p_offset integer DEFAULT 0) RETURNS SETOF message
    LANGUAGE plpgsql STABLE
    SET search_path FROM CURRENT
    SET plan_cache_mode TO 'force_custom_plan'
    AS $_$
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
$_$;
CREATE FUNCTION memory_embedding_changes() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
BEGIN
  IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND OLD.user_id <> NEW.user_id THEN
    UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = OLD.user_id;
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN NULL;
  END IF;
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = NEW.user_id
    RETURNING embeddings_version INTO NEW.embedding_version;
  NEW.embedding_version := COALESCE(NEW.embedding_version, 0);
  RETURN NEW;
END
$$;
CREATE FUNCTION memory_row_completed() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $_$
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
$_$;
CREATE FUNCTION remote_agent_leave_web() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF TG_TABLE_NAME = 'deliveries' THEN
    DELETE FROM web_messages WHERE delivery_id = OLD.id::text;
  ELSE
    DELETE FROM web_messages WHERE id = OLD.message_id AND delivery_id IS NULL;
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION remote_agent_refuse() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'check_violation';
END
$$;
CREATE FUNCTION remote_agent_release_file() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  UPDATE files SET released = 1 WHERE hash = substring(OLD.data_json FROM '"file":"([0-9a-f]{64})"');
  RETURN NULL;
END $$;
CREATE FUNCTION usage_changed() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
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
CREATE FUNCTION usage_day_changed(changed bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7697253, (changed % 64)::int);
  DELETE FROM usage_days WHERE day = changed;
END
$$;
CREATE FUNCTION usage_event_deleted() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM usage_records u WHERE u.event_id = OLD.id) THEN
    INSERT INTO usage_spread (event_id) VALUES (OLD.id) ON CONFLICT (event_id) DO NOTHING;
    PERFORM usage_day_changed(OLD.accepted_ms / 86400000);
  END IF;
  RETURN NULL;
END
$$;
CREATE FUNCTION usage_records_forget() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
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
CREATE VIEW agent_iterations AS
 SELECT u.id,
    jsonb_build_object('agent_id', s.agent_id, 'session_id', u.session_id, 'run_id', u.event_id, 'actor', u.actor, 'model', u.model, 'input_tokens', u.input_tokens, 'output_tokens', u.output_tokens, 'cost_micros', u.cost_micros) AS data,
    to_timestamp((((u.at_ms)::numeric / 1000.0))::double precision) AS created_at
   FROM (usage_records u
     JOIN remote_agent_sessions s ON ((s.id = u.session_id)))
  WHERE (s.agent_id IS NOT NULL);
CREATE VIEW agent_sessions AS
 SELECT remote_agent_sessions.id,
    remote_agent_sessions.agent_name,
    remote_agent_sessions.ai_assistant_type AS provider,
    remote_agent_sessions.model,
    remote_agent_sessions.system_prompt,
    remote_agent_sessions.user_prompt,
    remote_agent_sessions.config,
    remote_agent_sessions.status,
    (EXTRACT(epoch FROM remote_agent_sessions.started_at))::bigint AS started_at,
    (EXTRACT(epoch FROM remote_agent_sessions.ended_at))::bigint AS ended_at,
    remote_agent_sessions.result,
    remote_agent_sessions.error
   FROM remote_agent_sessions;
CREATE VIEW message_files AS
 SELECT agent_messages.id AS message_id,
    "substring"(agent_messages.data_json, '"file":"([0-9a-f]{64})"'::text) AS hash
   FROM agent_messages
  WHERE (agent_messages.kind = 'attachment'::text);
CREATE VIEW thread_id AS
 SELECT remote_agent_conversations.id,
    remote_agent_conversations.agent_id,
    (((remote_agent_conversations.platform_type)::text || '/'::text) || (remote_agent_conversations.platform_conversation_id)::text) AS name,
    (remote_agent_conversations.id)::text AS thread_id,
    remote_agent_conversations.created_at
   FROM remote_agent_conversations
  WHERE (remote_agent_conversations.agent_id IS NOT NULL);
INSERT INTO audit_head VALUES (1, 0, '');
INSERT INTO service_state VALUES (1, 0, 0, '', '');
CREATE INDEX episodic_time_idx ON episodic_memories USING btree (user_id, created_at DESC);
CREATE INDEX idx_agent_messages_file ON agent_messages USING btree ("substring"(data_json, '"file":"([0-9a-f]{64})"'::text)) WHERE (kind = 'attachment'::text);
CREATE INDEX idx_agent_messages_run ON agent_messages USING btree (run_id);
CREATE INDEX idx_agent_messages_session_created ON agent_messages USING btree (session_id, created_at);
CREATE INDEX idx_agent_messages_system ON agent_messages USING btree (session_id, seq) WHERE (role = 'system'::text);
CREATE INDEX idx_agent_messages_words ON agent_messages USING gin (agent_message_words(content)) WHERE (kind <> ALL (ARRAY['tool_call'::text, 'tool_result'::text, 'tool'::text, 'thinking'::text, 'system'::text]));
CREATE INDEX idx_agent_schedules_agent ON agent_schedules USING btree (agent_id);
CREATE INDEX idx_agent_schedules_event ON agent_schedules USING btree (event_id);
CREATE INDEX idx_agent_schedules_next ON agent_schedules USING btree (next_ms);
CREATE INDEX idx_agent_tool_calls_message ON agent_tool_calls USING btree (message_id);
CREATE INDEX idx_agent_tool_calls_session ON agent_tool_calls USING btree (session_id);
CREATE INDEX idx_agent_tool_calls_status ON agent_tool_calls USING btree (session_id, status);
CREATE INDEX idx_agents_name ON agents USING btree (name);
CREATE UNIQUE INDEX idx_api_keys_name ON api_keys USING btree (name) WHERE (revoked_ms = 0);
CREATE INDEX idx_approvals_codebase ON approvals USING btree (codebase_id);
CREATE INDEX idx_approvals_conversation ON approvals USING btree (conversation_id);
CREATE INDEX idx_approvals_event ON approvals USING btree (event_id, tool_call_id);
CREATE INDEX idx_approvals_session ON approvals USING btree (session_id);
CREATE INDEX idx_approvals_waiting ON approvals USING btree (conversation_id, number) WHERE (state = 'waiting'::text);
CREATE INDEX idx_audit_log_conversation ON audit_log USING btree (conversation_id, id);
CREATE UNIQUE INDEX idx_audit_log_effect ON audit_log USING btree (effect);
CREATE UNIQUE INDEX idx_audit_log_seq ON audit_log USING btree (seq);
CREATE INDEX idx_buttons_conversation ON buttons USING btree (conversation_id);
CREATE INDEX idx_deliveries_event ON deliveries USING btree (event_id, seq);
CREATE INDEX idx_deliveries_failed ON deliveries USING btree (id) WHERE (state = 'failed'::text);
CREATE INDEX idx_deliveries_open ON deliveries USING btree (conversation_id, seq) WHERE (state = ANY (ARRAY['pending'::text, 'sending'::text, 'placed'::text]));
CREATE INDEX idx_episodic_memories_bare ON episodic_memories USING btree (embedding_model, id);
CREATE INDEX idx_episodic_memories_codebase ON episodic_memories USING btree (codebase_id);
CREATE INDEX idx_episodic_memories_expires ON episodic_memories USING btree (expires_at);
CREATE INDEX idx_episodic_memories_model ON episodic_memories USING btree (user_id, embedding_model, embedding_version);
CREATE INDEX idx_episodic_memories_same ON episodic_memories USING btree (user_id, content_hash);
CREATE INDEX idx_episodic_memories_wordless ON episodic_memories USING btree (id) WHERE (terms = ''::text);
CREATE INDEX idx_episodic_memories_words ON episodic_memories USING gin (words);
CREATE INDEX idx_files_released ON files USING btree (hash) WHERE (released = 1);
CREATE INDEX idx_files_used ON files USING btree (used_ms);
CREATE INDEX idx_identities_owner ON identities USING btree (platform_type) WHERE (role = 'owner'::text);
CREATE INDEX idx_inbound_events_commands ON inbound_events USING btree (platform_type, sender) WHERE (lane = 'control'::text);
CREATE INDEX idx_inbound_events_control ON inbound_events USING btree (accepted_ms) WHERE ((lane = 'control'::text) AND (state = 'waiting'::text));
CREATE INDEX idx_inbound_events_failed ON inbound_events USING btree (id) WHERE ((lane = 'turn'::text) AND (state = 'failed'::text));
CREATE INDEX idx_inbound_events_kept ON inbound_events USING btree (accepted_ms) WHERE ((raw IS NOT NULL) OR (data IS NOT NULL) OR (checkpoint_seq IS NOT NULL));
CREATE INDEX idx_inbound_events_message ON inbound_events USING btree (conversation_id, message_id) WHERE (state = 'waiting'::text);
CREATE INDEX idx_inbound_events_open ON inbound_events USING btree (conversation_id, seq) WHERE ((lane = 'turn'::text) AND (state = ANY (ARRAY['waiting'::text, 'running'::text])));
CREATE INDEX idx_inbound_events_person ON inbound_events USING btree (platform_type, sender) WHERE ((lane = 'turn'::text) AND (state = 'waiting'::text));
CREATE INDEX idx_inbound_events_refused ON inbound_events USING btree (platform_type, sender, accepted_ms) WHERE ((state = 'refused'::text) AND (error = 'overflow'::text));
CREATE INDEX idx_inbound_events_sender ON inbound_events USING btree (sender, platform_type, conversation_id) WHERE (seq > 0);
CREATE UNIQUE INDEX idx_inbound_events_seq ON inbound_events USING btree (conversation_id, seq) WHERE (seq > 0);
CREATE INDEX idx_link_codes_conversation ON link_codes USING btree (conversation_id);
CREATE INDEX idx_memory_accounts_conversation ON memory_accounts USING btree (conversation_id);
CREATE INDEX idx_memory_accounts_person ON memory_accounts USING btree (user_id);
CREATE INDEX idx_memory_lessons_account ON memory_lessons USING btree (account, conversation_id);
CREATE INDEX idx_memory_lessons_claim ON memory_lessons USING btree (claim);
CREATE INDEX idx_memory_lessons_conversation ON memory_lessons USING btree (conversation_id);
CREATE INDEX idx_memory_lessons_due ON memory_lessons USING btree (next_ms);
CREATE UNIQUE INDEX idx_pairings_code ON pairings USING btree (code);
CREATE UNIQUE INDEX idx_pairings_person ON pairings USING btree (platform_type, user_id);
CREATE INDEX idx_plan_numbers_conversation ON plan_numbers USING btree (conversation_id);
CREATE INDEX idx_plans_conversation ON plans USING btree (conversation_id, number);
CREATE INDEX idx_plans_event ON plans USING btree (event_id);
CREATE UNIQUE INDEX idx_plans_one_open ON plans USING btree (conversation_id) WHERE (state = ANY (ARRAY['proposed'::text, 'approved'::text]));
CREATE INDEX idx_plans_session ON plans USING btree (session_id);
CREATE UNIQUE INDEX idx_remote_agent_codebases_name ON remote_agent_codebases USING btree (name) WHERE ((name)::text <> ''::text);
CREATE INDEX idx_remote_agent_codebases_repository ON remote_agent_codebases USING btree (repository_url) WHERE ((repository_url)::text <> ''::text);
CREATE INDEX idx_remote_agent_conversations_agent ON remote_agent_conversations USING btree (agent_id) WHERE (agent_id IS NOT NULL);
CREATE INDEX idx_remote_agent_conversations_codebase ON remote_agent_conversations USING btree (codebase_id);
CREATE INDEX idx_remote_agent_sessions_agent ON remote_agent_sessions USING btree (agent_id) WHERE (agent_id IS NOT NULL);
CREATE INDEX idx_remote_agent_sessions_agent_started ON remote_agent_sessions USING btree (agent_name, started_at, id);
CREATE INDEX idx_remote_agent_sessions_assistant ON remote_agent_sessions USING btree (ai_assistant_type, started_at, id);
CREATE INDEX idx_remote_agent_sessions_codebase ON remote_agent_sessions USING btree (codebase_id);
CREATE INDEX idx_remote_agent_sessions_conversation ON remote_agent_sessions USING btree (conversation_id, active);
CREATE INDEX idx_remote_agent_sessions_failed ON remote_agent_sessions USING btree (started_at, id) WHERE (status = 'failed'::text);
CREATE UNIQUE INDEX idx_remote_agent_sessions_one_active ON remote_agent_sessions USING btree (conversation_id) WHERE active;
CREATE INDEX idx_remote_agent_sessions_parent ON remote_agent_sessions USING btree (parent_session_id);
CREATE INDEX idx_remote_agent_sessions_repository ON remote_agent_sessions USING btree (codebase_id, started_at, id);
CREATE INDEX idx_remote_agent_sessions_started ON remote_agent_sessions USING btree (started_at, id);
CREATE INDEX idx_semantic_memories_bare ON semantic_memories USING btree (embedding_model, id);
CREATE INDEX idx_semantic_memories_codebase ON semantic_memories USING btree (codebase_id);
CREATE INDEX idx_semantic_memories_model ON semantic_memories USING btree (user_id, embedding_model, embedding_version);
CREATE UNIQUE INDEX idx_semantic_memories_same ON semantic_memories USING btree (user_id, COALESCE((codebase_id)::text, ''::text), content_hash);
CREATE INDEX idx_semantic_memories_wordless ON semantic_memories USING btree (id) WHERE (terms = ''::text);
CREATE INDEX idx_semantic_memories_words ON semantic_memories USING gin (words);
CREATE INDEX idx_usage_records_actor ON usage_records USING btree (actor, at_ms);
CREATE INDEX idx_usage_records_at ON usage_records USING btree (at_ms);
CREATE INDEX idx_usage_records_codebase ON usage_records USING btree (codebase_id, at_ms) WHERE (codebase_id IS NOT NULL);
CREATE INDEX idx_usage_records_conversation ON usage_records USING btree (conversation_id, at_ms);
CREATE INDEX idx_web_chats_account ON web_chats USING btree (account, changed_ms);
CREATE INDEX idx_web_files_message ON web_files USING btree (message_id);
CREATE UNIQUE INDEX idx_web_messages_delivery ON web_messages USING btree (delivery_id) WHERE (delivery_id IS NOT NULL);
CREATE INDEX idx_web_messages_event ON web_messages USING btree (chat_id, seq) WHERE (event IS NOT NULL);
CREATE UNIQUE INDEX idx_web_messages_place ON web_messages USING btree (chat_id, seq);
CREATE UNIQUE INDEX idx_web_sessions_token ON web_sessions USING btree (token_hash);
CREATE INDEX semantic_category_idx ON semantic_memories USING btree (user_id, category);
CREATE TRIGGER agent_messages_release_file AFTER DELETE ON agent_messages FOR EACH ROW WHEN ((old.kind = 'attachment'::text)) EXECUTE FUNCTION remote_agent_release_file();
CREATE TRIGGER approvals_request_locked BEFORE UPDATE ON approvals FOR EACH ROW WHEN ((((((((((((((old.number IS DISTINCT FROM new.number) OR (old.conversation_id IS DISTINCT FROM new.conversation_id)) OR (old.tool_call_id IS DISTINCT FROM new.tool_call_id)) OR (old.tool_name IS DISTINCT FROM new.tool_name)) OR (old.request IS DISTINCT FROM new.request)) OR ((old.sha256)::text IS DISTINCT FROM (new.sha256)::text)) OR (old.kind IS DISTINCT FROM new.kind)) OR (old.title IS DISTINCT FROM new.title)) OR (old.detail IS DISTINCT FROM new.detail)) OR (old.rule IS DISTINCT FROM new.rule)) OR ((old.requester)::text IS DISTINCT FROM (new.requester)::text)) OR (old.created_ms IS DISTINCT FROM new.created_ms)) OR (old.expires_ms IS DISTINCT FROM new.expires_ms))) EXECUTE FUNCTION remote_agent_refuse('what an approval is about does not change');
CREATE TRIGGER approvals_settled_once BEFORE UPDATE ON approvals FOR EACH ROW WHEN (((old.state <> 'waiting'::text) AND (old.state IS DISTINCT FROM new.state))) EXECUTE FUNCTION remote_agent_refuse('an approval is settled once');
CREATE TRIGGER audit_log_append_only BEFORE DELETE OR UPDATE ON audit_log FOR EACH ROW EXECUTE FUNCTION remote_agent_refuse('audit_log is append-only');
CREATE TRIGGER audit_log_no_truncate BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION remote_agent_refuse('audit_log is append-only');
CREATE TRIGGER deliveries_emptied_on_web AFTER UPDATE OF body ON deliveries FOR EACH ROW WHEN (((new.body = ''::text) AND (old.body <> ''::text))) EXECUTE FUNCTION remote_agent_leave_web();
CREATE TRIGGER deliveries_leave_web AFTER DELETE ON deliveries FOR EACH ROW EXECUTE FUNCTION remote_agent_leave_web();
CREATE TRIGGER episodic_completed BEFORE INSERT ON episodic_memories FOR EACH ROW WHEN ((new.seq IS NULL)) EXECUTE FUNCTION memory_row_completed();
CREATE TRIGGER episodic_embedding_added BEFORE INSERT ON episodic_memories FOR EACH ROW WHEN (((new.embedding_model)::text <> ''::text)) EXECUTE FUNCTION memory_embedding_changes();
CREATE TRIGGER episodic_embedding_changed BEFORE UPDATE ON episodic_memories FOR EACH ROW WHEN (((old.embedding IS DISTINCT FROM new.embedding) OR ((old.embedding_model)::text <> (new.embedding_model)::text) OR ((old.user_id)::text <> (new.user_id)::text) OR (old.codebase_id IS DISTINCT FROM new.codebase_id) OR (old.expires_at <> new.expires_at))) EXECUTE FUNCTION memory_embedding_changes();
CREATE TRIGGER episodic_embedding_removed AFTER DELETE ON episodic_memories FOR EACH ROW WHEN (((old.embedding_model)::text <> ''::text)) EXECUTE FUNCTION memory_embedding_changes();
CREATE TRIGGER inbound_events_leave_web AFTER UPDATE OF data ON inbound_events FOR EACH ROW WHEN (((new.data IS NULL) AND (old.data IS NOT NULL) AND ((old.platform_type)::text = 'web'::text))) EXECUTE FUNCTION remote_agent_leave_web();
CREATE TRIGGER plans_settled_once BEFORE UPDATE ON plans FOR EACH ROW WHEN (((old.state = ANY (ARRAY['rejected'::text, 'expired'::text, 'superseded'::text, 'done'::text])) AND (old.state IS DISTINCT FROM new.state))) EXECUTE FUNCTION remote_agent_refuse('a plan is settled once');
CREATE TRIGGER plans_text_locked BEFORE UPDATE ON plans FOR EACH ROW WHEN (((((((((((old.id IS DISTINCT FROM new.id) OR (old.number IS DISTINCT FROM new.number)) OR (old.version IS DISTINCT FROM new.version)) OR (old.conversation_id IS DISTINCT FROM new.conversation_id)) OR (old.goal IS DISTINCT FROM new.goal)) OR (old.body IS DISTINCT FROM new.body)) OR ((old.sha256)::text IS DISTINCT FROM (new.sha256)::text)) OR ((old.author)::text IS DISTINCT FROM (new.author)::text)) OR ((old.requester)::text IS DISTINCT FROM (new.requester)::text)) OR (old.created_ms IS DISTINCT FROM new.created_ms))) EXECUTE FUNCTION remote_agent_refuse('a version of a plan does not change');
CREATE TRIGGER remote_agent_conversations_assistant_locked BEFORE UPDATE ON remote_agent_conversations FOR EACH ROW WHEN (((old.ai_assistant_type)::text IS DISTINCT FROM (new.ai_assistant_type)::text)) EXECUTE FUNCTION remote_agent_refuse('ai_assistant_type is locked at creation');
CREATE TRIGGER semantic_completed BEFORE INSERT ON semantic_memories FOR EACH ROW WHEN ((new.seq IS NULL)) EXECUTE FUNCTION memory_row_completed();
CREATE TRIGGER semantic_embedding_added BEFORE INSERT ON semantic_memories FOR EACH ROW WHEN (((new.embedding_model)::text <> ''::text)) EXECUTE FUNCTION memory_embedding_changes();
CREATE TRIGGER semantic_embedding_changed BEFORE UPDATE ON semantic_memories FOR EACH ROW WHEN (((old.embedding IS DISTINCT FROM new.embedding) OR ((old.embedding_model)::text <> (new.embedding_model)::text) OR ((old.user_id)::text <> (new.user_id)::text) OR (old.codebase_id IS DISTINCT FROM new.codebase_id))) EXECUTE FUNCTION memory_embedding_changes();
CREATE TRIGGER semantic_embedding_removed AFTER DELETE ON semantic_memories FOR EACH ROW WHEN (((old.embedding_model)::text <> ''::text)) EXECUTE FUNCTION memory_embedding_changes();
CREATE TRIGGER usage_days_changed AFTER INSERT OR DELETE OR UPDATE OF event_id, conversation_id, codebase_id, actor, ai_assistant_type, model, input_tokens, output_tokens, cost_micros, at_ms ON usage_records FOR EACH ROW EXECUTE FUNCTION usage_changed();
CREATE TRIGGER usage_days_event_deleted AFTER DELETE ON inbound_events FOR EACH ROW EXECUTE FUNCTION usage_event_deleted();
CREATE TRIGGER usage_records_conversation_deleted BEFORE DELETE ON remote_agent_conversations FOR EACH ROW EXECUTE FUNCTION usage_records_forget();
CREATE TRIGGER usage_records_event_deleted AFTER DELETE ON inbound_events FOR EACH ROW EXECUTE FUNCTION usage_records_forget();
CREATE TRIGGER usage_records_session_deleted AFTER DELETE ON remote_agent_sessions FOR EACH ROW EXECUTE FUNCTION usage_records_forget();
