-- What the program adds to a database that has pgvector: vectors of the memories
-- and the functions of seed 004. None of it is needed by the program's own tables,
-- and all of it can be made again from them: a backup leaves it out, and so it is
-- no migration. It is run with search_path set to the schemas of the tables and of
-- the extension, which the functions keep.
--
-- The functions compare vectors of one embedding model: the one in the setting
-- bot.embedding_model, else that of the newest memory that has a vector. They see
-- memories that hold everywhere, and not those of one codebase. Accounts that were
-- linked are one person, whichever of them is named. They may do what
-- the owner of the tables may, for any person: so only whom the owner grants it may
-- execute them.

CREATE TABLE IF NOT EXISTS semantic_vectors (
  id BIGINT PRIMARY KEY REFERENCES semantic_memories(id) ON DELETE CASCADE,
  embedding vector(384) NOT NULL
);
CREATE TABLE IF NOT EXISTS episodic_vectors (
  id BIGINT PRIMARY KEY REFERENCES episodic_memories(id) ON DELETE CASCADE,
  embedding vector(384) NOT NULL
);

-- memory_vector reads 384 little-endian 32-bit floats. It is NULL for what cannot
-- be compared: another length, a number that is not finite, nothing but zeros.
CREATE OR REPLACE FUNCTION memory_vector(raw BYTEA) RETURNS vector
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
  SELECT CASE WHEN count(*) = 384 AND bool_and(e < 255) AND bool_or(e > 0 OR m > 0) THEN
    array_agg((CASE WHEN s = 1 THEN -1 ELSE 1 END
      * CASE WHEN e = 255 THEN 0 WHEN e = 0 THEN m * power(2::float8, -149) ELSE (m + 8388608) * power(2::float8, e - 150) END)::real ORDER BY i)::vector END
  FROM (
    SELECT i, b3 >> 7 AS s, ((b3 & 127) << 1) | (b2 >> 7) AS e, ((b2 & 127) << 16) | (b1 << 8) | b0 AS m
    FROM (
      SELECT i, get_byte(raw, 4 * i) AS b0, get_byte(raw, 4 * i + 1) AS b1, get_byte(raw, 4 * i + 2) AS b2, get_byte(raw, 4 * i + 3) AS b3
      FROM generate_series(0, length(raw) / 4 - 1) AS i
    ) bytes
  ) parts
$$;

-- memory_bytes is the opposite of memory_vector.
CREATE OR REPLACE FUNCTION memory_bytes(v vector) RETURNS BYTEA
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
  SELECT string_agg(substring(f FROM 4 FOR 1) || substring(f FROM 3 FOR 1) || substring(f FROM 2 FOR 1) || substring(f FROM 1 FOR 1), ''::bytea ORDER BY i)
  FROM (SELECT float4send(x) AS f, i FROM unnest(v::real[]) WITH ORDINALITY AS u(x, i)) numbers
$$;

-- Whoever stores an embedding, this program in any version or a person, the vector
-- follows. Without pgvector, which may have been removed since, nothing happens.
CREATE OR REPLACE FUNCTION memory_vector_follows() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF OLD.embedding IS NOT DISTINCT FROM NEW.embedding THEN
      RETURN NULL;
    END IF;
    IF TG_TABLE_NAME = 'semantic_memories' THEN
      DELETE FROM semantic_vectors WHERE id = NEW.id;
    ELSE
      DELETE FROM episodic_vectors WHERE id = NEW.id;
    END IF;
  END IF;
  IF TG_TABLE_NAME = 'semantic_memories' THEN
    INSERT INTO semantic_vectors (id, embedding) SELECT NEW.id, v FROM memory_vector(NEW.embedding) AS v WHERE v IS NOT NULL;
  ELSE
    INSERT INTO episodic_vectors (id, embedding) SELECT NEW.id, v FROM memory_vector(NEW.embedding) AS v WHERE v IS NOT NULL;
  END IF;
  RETURN NULL;
EXCEPTION WHEN undefined_table OR undefined_column OR undefined_object OR undefined_function OR undefined_file THEN
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER semantic_vectors_follow AFTER INSERT OR UPDATE OF embedding ON semantic_memories
  FOR EACH ROW EXECUTE FUNCTION memory_vector_follows();
CREATE OR REPLACE TRIGGER episodic_vectors_follow AFTER INSERT OR UPDATE OF embedding ON episodic_memories
  FOR EACH ROW EXECUTE FUNCTION memory_vector_follows();

-- flatten_array returns each element once, in the order of first appearance.
CREATE OR REPLACE FUNCTION flatten_array(anyarray) RETURNS anyarray LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN $1 IS NULL THEN NULL ELSE COALESCE((
    SELECT array_agg(x ORDER BY first) FROM (SELECT x, min(i) AS first FROM unnest($1) WITH ORDINALITY AS u(x, i) GROUP BY x) AS once), '{}') END
$$;

CREATE OR REPLACE FUNCTION memory_check(p_user_id VARCHAR, p_embedding vector, p_threshold FLOAT) RETURNS void
  LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
  IF p_user_id IS NULL OR p_user_id = '' OR octet_length(p_user_id) > 300 THEN
    RAISE EXCEPTION 'p_user_id names nobody, or is longer than 300 bytes' USING ERRCODE = '22023';
  ELSIF p_embedding IS NULL OR vector_dims(p_embedding) <> 384 THEN
    RAISE EXCEPTION 'p_embedding has to have 384 numbers' USING ERRCODE = '22023', HINT = 'Ask the embedding model for 384 dimensions.';
  ELSIF vector_norm(p_embedding) = 0 THEN
    RAISE EXCEPTION 'p_embedding is all zeros, so it is like nothing' USING ERRCODE = '22023';
  ELSIF p_threshold IS NULL OR NOT (p_threshold > 0 AND p_threshold <= 1) THEN
    RAISE EXCEPTION 'a threshold is above 0 and at most 1, not %', p_threshold USING ERRCODE = '22023';
  END IF;
END
$$;

-- memory_clean is a text as it is stored: on one line.
CREATE OR REPLACE FUNCTION memory_clean(p_text TEXT) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT AS $$
DECLARE
  cleaned TEXT := btrim(regexp_replace(p_text, '\s+', ' ', 'g'));
BEGIN
  IF cleaned IS NULL OR cleaned = '' OR length(cleaned) > 2000 THEN
    RAISE EXCEPTION 'a memory has from 1 to 2000 characters' USING ERRCODE = '22023';
  END IF;
  RETURN cleaned;
END
$$;

-- memory_hash is that of the program. Where the database's locale does not know the
-- small letters of a script, the program puts it right when it indexes the row.
CREATE OR REPLACE FUNCTION memory_hash(p_text TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT SET search_path FROM CURRENT AS $$
  SELECT encode(sha256(convert_to(rtrim(lower(p_text), '.!。！ '), 'UTF8')), 'hex')
$$;

-- memory_lexicon has the tables of the program's Relate; they are filled in when this
-- is run.
CREATE OR REPLACE FUNCTION memory_lexicon() RETURNS JSONB LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT {{lexicon}}::jsonb $$;

-- memory_reduce takes the commonest endings off an English word.
CREATE OR REPLACE FUNCTION memory_reduce(w TEXT) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  ending TEXT;
BEGIN
  IF w IN ('use', 'uses', 'used', 'using') THEN
    RETURN 'use';
  ELSIF length(w) < 4 OR w ~ '[^a-z]' THEN
    RETURN w;
  ELSIF w ~ 'ies\Z' AND length(w) > 4 THEN
    RETURN left(w, -3) || 'y';
  ELSIF w ~ '(sses|xes|ches|shes)\Z' THEN
    w := left(w, -2);
  ELSIF w ~ '[^sui]s\Z' THEN
    w := left(w, -1);
  END IF;
  FOREACH ending IN ARRAY ARRAY['ing', 'ed'] LOOP
    IF right(w, length(ending)) = ending AND length(w) >= length(ending) + 3 AND left(w, -length(ending)) ~ '[aeiouy]' THEN
      w := left(w, -length(ending));
      IF w ~ '([^lsz])\1\Z' THEN
        w := left(w, -1);
      END IF;
      EXIT;
    END IF;
  END LOOP;
  RETURN CASE WHEN w ~ '...e\Z' THEN left(w, -1) ELSE w END;
END
$$;

-- memory_read takes a text apart as the program's Relate does: what stands for each of
-- its words (c), as it was typed (l), whether it is written as a name (n); how many
-- denials there are, and what comes behind the last comparison. Scripts without spaces
-- are read by their phrases.
CREATE OR REPLACE FUNCTION memory_read(p_text TEXT) RETURNS JSONB LANGUAGE plpgsql IMMUTABLE STRICT SET search_path FROM CURRENT AS $$
DECLARE
  lex CONSTANT JSONB := memory_lexicon();
  said TEXT := ' ' || replace(btrim(regexp_replace(p_text, '\s+', ' ', 'g')), '’', '''') || ' ';
  typed TEXT[];
  word TEXT;
  low TEXT;
  concept TEXT;
  denials INTEGER := 0;
  pending BOOLEAN := false;
  french BOOLEAN := false;
  named BOOLEAN;
  behind TEXT;
  known TEXT[] := '{}';
  words JSONB := '[]';
BEGIN
  FOR i IN 0 .. jsonb_array_length(lex -> 'phrases') / 2 - 1 LOOP
    said := replace(said, lex -> 'phrases' ->> 2 * i, lex -> 'phrases' ->> 2 * i + 1);
  END LOOP;
  typed := ARRAY(SELECT btrim(m[1], '''') FROM regexp_matches(said, '([^\s!-&(-/:-@\[-`{-~«»“”„…–—。，！？、；：]+)', 'g') WITH ORDINALITY AS t(m, i)
    WHERE btrim(m[1], '''') <> '' ORDER BY i);
  SELECT NOT bool_or(lex -> 'german' ? lower(w) OR lower(w) ~ '[äöüß]')
    AND (count(*) FILTER (WHERE i > 1 AND left(w, 1) <> lower(left(w, 1))) <= 1 OR count(*) FILTER (WHERE i > 1 AND left(w, 1) = lower(left(w, 1))) > 0)
    INTO named FROM unnest(typed) WITH ORDINALITY AS u(w, i);
  FOR i IN 1 .. cardinality(typed) LOOP
    word := typed[i];
    low := lower(word);
    IF low = 'ne' THEN
      french := true;
      CONTINUE;
    ELSIF lex -> 'negations' ? low OR low ~ 'n''t\Z' THEN
      denials := denials + 1;
      pending := pending OR lex -> 'comparisons' ? low;
      CONTINUE;
    END IF;
    pending := pending OR lex -> 'comparisons' ? low;
    CONTINUE WHEN lex -> 'unsaid' ? low OR lex -> 'comparisons' ? low AND NOT lex -> 'turned_by' ? low;
    IF low ~ '''' THEN
      IF length(split_part(low, '''', 1)) <= 2 AND length(substring(low FROM position('''' IN low) + 1)) > 2 THEN
        french := french OR split_part(low, '''', 1) = 'n';
        low := substring(low FROM position('''' IN low) + 1);
      ELSE
        low := split_part(low, '''', 1);
      END IF;
    END IF;
    concept := COALESCE(lex -> 'concepts' ->> memory_reduce(low), memory_reduce(low));
    CONTINUE WHEN concept = ANY (known) AND NOT pending;
    IF pending AND NOT lex -> 'turned_by' ? low THEN
      behind := concept;
      pending := false;
    END IF;
    IF concept <> ALL (known) THEN
      known := known || concept;
      words := words || jsonb_build_array(jsonb_build_object('c', concept, 'l', word, 'n',
        named AND (substring(word FROM 2) <> lower(substring(word FROM 2)) OR i > 1 AND left(word, 1) <> lower(left(word, 1)))));
    END IF;
  END LOOP;
  IF french AND denials = 0 THEN
    denials := 1;
  END IF;
  RETURN jsonb_build_object('words', words, 'denials', denials, 'behind', behind);
END
$$;

-- memory_opposed tells whether two words are each other's opposites.
CREATE OR REPLACE FUNCTION memory_opposed(a TEXT, b TEXT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE STRICT SET search_path FROM CURRENT AS $$
  SELECT EXISTS (
      SELECT FROM jsonb_array_elements(memory_lexicon() -> 'opposites') AS p WHERE p = jsonb_build_array(a, b) OR p = jsonb_build_array(b, a))
    OR length(x.short) >= 4 AND right(x.long, length(x.short)) = x.short AND memory_lexicon() -> 'denying' ? left(x.long, -length(x.short))
  FROM (SELECT CASE WHEN length(a) < length(b) THEN a ELSE b END AS short, CASE WHEN length(a) < length(b) THEN b ELSE a END AS long) x
$$;

-- memory_alike tells whether two words are one, in a longer and a shorter form.
CREATE OR REPLACE FUNCTION memory_alike(a JSONB, b JSONB) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE STRICT SET search_path FROM CURRENT AS $$
  SELECT x.long ->> 'c' = x.short ->> 'c' OR (x.long ->> 'c') || (x.short ->> 'c') !~ '[0-9]' AND (
    length(x.short ->> 'c') >= 3 AND starts_with(x.long ->> 'c', x.short ->> 'c') AND NOT memory_opposed(x.long ->> 'c', x.short ->> 'c')
    OR length(x.short ->> 'c') >= 2 AND lower(regexp_replace(x.long ->> 'l', '[^A-Z]', '', 'g')) = x.short ->> 'c')
  FROM (SELECT CASE WHEN length(a ->> 'c') < length(b ->> 'c') THEN b ELSE a END AS long, CASE WHEN length(a ->> 'c') < length(b ->> 'c') THEN a ELSE b END AS short) x
$$;

-- memory_relation is the program's Relate: same, rephrased, opposite or different. Only
-- what is clearly opposite is called so, never a word that is not known.
CREATE OR REPLACE FUNCTION memory_relation(p_before TEXT, p_after TEXT) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE STRICT SET search_path FROM CURRENT AS $$
DECLARE
  a CONSTANT JSONB := memory_read(p_before);
  b CONSTANT JSONB := memory_read(p_after);
  gone JSONB[] := ARRAY(SELECT w FROM jsonb_array_elements(a -> 'words') WITH ORDINALITY AS u(w, i)
    WHERE NOT EXISTS (SELECT FROM jsonb_array_elements(b -> 'words') AS o WHERE memory_alike(o, w)) ORDER BY i);
  come JSONB[] := ARRAY(SELECT w FROM jsonb_array_elements(b -> 'words') WITH ORDINALITY AS u(w, i)
    WHERE NOT EXISTS (SELECT FROM jsonb_array_elements(a -> 'words') AS o WHERE memory_alike(o, w)) ORDER BY i);
  size_a CONSTANT INTEGER := jsonb_array_length(a -> 'words');
  size_b CONSTANT INTEGER := jsonb_array_length(b -> 'words');
  turns INTEGER := ((a ->> 'denials')::int + (b ->> 'denials')::int) % 2;
  turned INTEGER := 0;
  rest JSONB[] := '{}';
  valued BOOLEAN := false;
  near BOOLEAN;
  place INTEGER;
BEGIN
  IF memory_hash(btrim(regexp_replace(p_before, '\s+', ' ', 'g'))) = memory_hash(btrim(regexp_replace(p_after, '\s+', ' ', 'g'))) THEN
    RETURN 'same';
  END IF;
  IF a ->> 'behind' <> b ->> 'behind'
    AND EXISTS (SELECT FROM jsonb_array_elements(b -> 'words') AS w WHERE w -> 'c' = a -> 'behind')
    AND EXISTS (SELECT FROM jsonb_array_elements(a -> 'words') AS w WHERE w -> 'c' = b -> 'behind') THEN
    turns := turns + 1;
  END IF;
  FOR i IN 1 .. cardinality(gone) LOOP
    SELECT min(u.k) INTO place FROM unnest(come) WITH ORDINALITY AS u(w, k) WHERE memory_opposed(gone[i] ->> 'c', u.w ->> 'c');
    IF place IS NULL THEN
      rest := rest || gone[i];
    ELSE
      come := come[:place - 1] || come[place + 1:];
      turned := turned + 1;
    END IF;
  END LOOP;
  gone := rest;
  IF cardinality(gone) = 1 AND cardinality(come) = 1 AND (gone[1] ->> 'n')::boolean AND (come[1] ->> 'n')::boolean THEN
    valued := true;
    gone := '{}';
  ELSE
    rest := ARRAY(SELECT g FROM unnest(gone) AS g WHERE NOT EXISTS (
      SELECT FROM unnest(come) AS c WHERE g ->> 'c' ~ '[0-9]' AND c ->> 'c' ~ '[0-9]' OR g ->> 'c' <> c ->> 'c' AND EXISTS (
        SELECT FROM jsonb_array_elements(memory_lexicon() -> 'alternatives') AS s WHERE s ? (g ->> 'c') AND s ? (c ->> 'c'))));
    valued := cardinality(rest) < cardinality(gone);
    gone := rest;
  END IF;
  turns := turns + turned;
  near := 2 * (size_a - cardinality(gone)) > greatest(size_a, size_b);
  IF valued AND near OR turns % 2 = 1 AND (near OR turned > 0) THEN
    RETURN 'opposite';
  END IF;
  RETURN CASE WHEN near THEN 'rephrased' ELSE 'different' END;
END
$$;

-- memory_contradicts tells whether a text clearly denies another one.
CREATE OR REPLACE FUNCTION memory_contradicts(p_before TEXT, p_after TEXT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE STRICT SET search_path FROM CURRENT AS $$
  SELECT memory_relation(p_before, p_after) = 'opposite'
$$;

CREATE OR REPLACE FUNCTION memory_model() RETURNS TEXT LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  SELECT COALESCE(
    NULLIF(current_setting('bot.embedding_model', true), ''),
    (SELECT m.embedding_model FROM semantic_vectors v JOIN semantic_memories m ON m.id = v.id ORDER BY v.id DESC LIMIT 1),
    (SELECT m.embedding_model FROM episodic_vectors v JOIN episodic_memories m ON m.id = v.id ORDER BY v.id DESC LIMIT 1),
    'sql')
$$;

-- memory_person_of is under whose name the memories of an account are: see personOf
-- of the program.
CREATE OR REPLACE FUNCTION memory_person_of(p_user_id VARCHAR) RETURNS VARCHAR LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  SELECT COALESCE((SELECT a.user_id FROM memory_accounts a WHERE a.account = p_user_id), p_user_id)
$$;

-- memory_person locks the person of an account, who is made if they are not there,
-- and returns who it is. All that changes their memories does so first; see
-- lockPerson of the program. In version 1 it returned nothing, and what a function
-- returns cannot be replaced.
DROP FUNCTION IF EXISTS memory_person(VARCHAR);
CREATE FUNCTION memory_person(p_user_id VARCHAR) RETURNS VARCHAR LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  person VARCHAR;
  learns BOOLEAN;
BEGIN
  LOOP
    person := memory_person_of(p_user_id);
    IF person NOT LIKE 'person/%' THEN -- those are made by linking only
      INSERT INTO memory_people (user_id) VALUES (person) ON CONFLICT (user_id) DO NOTHING;
    END IF;
    SELECT enabled INTO learns FROM memory_people WHERE user_id = person FOR UPDATE;
    IF FOUND AND memory_person_of(p_user_id) = person THEN
      EXIT;
    ELSIF person LIKE 'person/%' AND person = p_user_id THEN
      RAISE EXCEPTION 'there is no %', p_user_id USING ERRCODE = '22023', HINT = 'Give the name of an account, such as telegram/42.';
    END IF; -- else the account was linked, or left, while the row was waited for
  END LOOP;
  IF NOT learns THEN
    RAISE EXCEPTION 'memory is off for %', p_user_id USING ERRCODE = '55000', HINT = 'They switch it on with /memory on.';
  END IF;
  RETURN person;
END
$$;

-- memory_nearness is a similarity in thousandths; NULL if nothing was there.
CREATE OR REPLACE FUNCTION memory_nearness(p_similarity FLOAT) RETURNS BIGINT LANGUAGE sql IMMUTABLE STRICT AS $$
  SELECT floor(least(greatest(p_similarity, 0), 1) * 1000 + 1e-6)::bigint
$$;

CREATE OR REPLACE FUNCTION memory_number(p_user_id VARCHAR) RETURNS BIGINT LANGUAGE sql SET search_path FROM CURRENT AS $$
  UPDATE memory_people SET seq = seq + 1 WHERE user_id = p_user_id RETURNING seq
$$;

-- memory_json_union is the union of two lists in order, the newest 100.
CREATE OR REPLACE FUNCTION memory_json_union(p_old JSONB, p_new JSONB) RETURNS JSONB LANGUAGE sql IMMUTABLE SET search_path FROM CURRENT AS $$
  SELECT COALESCE(jsonb_agg(x ORDER BY first), '[]') FROM (
    SELECT x, min(i) AS first FROM jsonb_array_elements(COALESCE(p_old, '[]') || COALESCE(p_new, '[]')) WITH ORDINALITY AS u(x, i)
    WHERE x <> 'null' GROUP BY x ORDER BY first DESC LIMIT 100) AS kept
$$;

CREATE OR REPLACE FUNCTION upsert_semantic_memory_smart(
  p_user_id VARCHAR(100), p_run_id UUID, p_fact TEXT, p_embedding vector(384), p_category VARCHAR(50) DEFAULT NULL,
  p_source_events INTEGER[] DEFAULT '{}', p_similarity_threshold FLOAT DEFAULT 0.85
) RETURNS TABLE (memory_id BIGINT, operation TEXT, similarity_score FLOAT, matched_fact TEXT)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  stored TEXT := memory_clean(p_fact);
  model TEXT := memory_model();
  near RECORD;
  relation TEXT;
BEGIN
  PERFORM memory_check(p_user_id, p_embedding, p_similarity_threshold);
  p_user_id := memory_person(p_user_id);
  SELECT c.* INTO near FROM (
    SELECT m.id, m.fact, m.confidence, 1::float AS similarity, 0 AS later FROM semantic_memories m
    WHERE m.user_id = p_user_id AND m.codebase_id IS NULL AND m.content_hash = memory_hash(stored)
    UNION ALL
    (WITH own AS MATERIALIZED ( -- an index of vectors would look among everybody's
      SELECT m.id, m.fact, m.confidence, m.seq, 1 - (v.embedding <=> p_embedding) AS similarity
      FROM semantic_memories m JOIN semantic_vectors v ON v.id = m.id
      WHERE m.user_id = p_user_id AND m.codebase_id IS NULL AND m.embedding_model = model)
    SELECT own.id, own.fact, own.confidence, own.similarity, 1 FROM own
    WHERE own.similarity <= 1.001 -- NaN is more than any number
    ORDER BY own.similarity DESC, own.seq LIMIT 1)
  ) c ORDER BY c.later LIMIT 1;

  IF near.id IS NULL OR near.similarity < p_similarity_threshold THEN
    INSERT INTO semantic_memories (user_id, run_id, fact, embedding, embedding_model, category, source_events, seq, content_hash, nearness)
    VALUES (p_user_id, p_run_id, stored, memory_bytes(p_embedding), model, p_category,
      memory_json_union('[]', to_jsonb(p_source_events)), memory_number(p_user_id), memory_hash(stored), memory_nearness(near.similarity))
    RETURNING id INTO memory_id;
    operation := 'INSERT_NEW';
    RETURN NEXT;
    RETURN;
  END IF;
  relation := memory_relation(near.fact, stored);
  UPDATE semantic_memories SET
    fact = stored, nearness = memory_nearness(near.similarity), embedding = memory_bytes(p_embedding), embedding_model = model, content_hash = memory_hash(stored), run_id = p_run_id,
    terms = CASE WHEN fact = stored THEN terms ELSE '' END, last_key = '',
    updated_at = clock_timestamp(), access_count = access_count + 1, category = COALESCE(p_category, category),
    source_events = memory_json_union(source_events, to_jsonb(p_source_events)),
    confidence = CASE relation WHEN 'opposite' THEN least(confidence, 0.5) WHEN 'different' THEN confidence
      ELSE least(round((confidence + 0.1)::numeric, 2)::float, 0.99) END,
    history = CASE WHEN fact = stored THEN history ELSE (
      SELECT jsonb_agg(h ORDER BY i) FROM (SELECT h, i FROM jsonb_array_elements(history || jsonb_build_object(
        'text', fact, 'confidence', confidence, 'until', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'why', CASE relation WHEN 'opposite' THEN 'contradicted' WHEN 'different' THEN 'replaced' ELSE 'rephrased' END)) WITH ORDINALITY AS u(h, i)
        ORDER BY i DESC LIMIT 20) AS kept) END
  WHERE id = near.id;
  memory_id := near.id;
  operation := 'UPDATE_SIMILAR';
  similarity_score := near.similarity;
  matched_fact := near.fact;
  RETURN NEXT;
END
$$;

CREATE OR REPLACE FUNCTION insert_episodic_memory_smart(
  p_user_id VARCHAR(100), p_run_id UUID, p_content TEXT, p_embedding vector(384), p_sources TEXT[] DEFAULT '{}',
  p_confidence FLOAT DEFAULT 1.0, p_similarity_threshold FLOAT DEFAULT 0.95
) RETURNS TABLE (memory_id BIGINT, operation TEXT, similar_memory_id BIGINT, similar_memory_content TEXT, similarity_score FLOAT)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  stored TEXT := memory_clean(p_content);
  model TEXT := memory_model();
  near RECORD;
BEGIN
  PERFORM memory_check(p_user_id, p_embedding, p_similarity_threshold);
  IF p_confidence IS NULL OR NOT (p_confidence > 0 AND p_confidence <= 10) THEN
    RAISE EXCEPTION 'the confidence of an episode is above 0 and at most 10, not %', p_confidence USING ERRCODE = '22023';
  END IF;
  p_user_id := memory_person(p_user_id);
  SELECT c.* INTO near FROM (
    SELECT m.id, m.content, 1::float AS similarity, 0 AS later, m.seq FROM episodic_memories m
    WHERE m.user_id = p_user_id AND m.codebase_id IS NULL AND m.content_hash = memory_hash(stored) AND m.expires_at > clock_timestamp()
    UNION ALL
    (WITH own AS MATERIALIZED (
      SELECT m.id, m.content, m.seq, 1 - (v.embedding <=> p_embedding) AS similarity
      FROM episodic_memories m JOIN episodic_vectors v ON v.id = m.id
      WHERE m.user_id = p_user_id AND m.codebase_id IS NULL AND m.embedding_model = model AND m.expires_at > clock_timestamp())
    SELECT own.id, own.content, own.similarity, 1, own.seq FROM own
    WHERE own.similarity <= 1.001
    ORDER BY own.similarity DESC, own.seq LIMIT 1)
  ) c ORDER BY c.later, c.seq LIMIT 1;

  IF near.id IS NULL OR near.similarity < p_similarity_threshold THEN
    INSERT INTO episodic_memories (user_id, run_id, content, embedding, embedding_model, sources, confidence, expires_at, seq, content_hash, nearness)
    VALUES (p_user_id, p_run_id, stored, memory_bytes(p_embedding), model, memory_json_union('[]', to_jsonb(p_sources)), p_confidence,
      clock_timestamp() + INTERVAL '30 days', memory_number(p_user_id), memory_hash(stored), memory_nearness(near.similarity))
    RETURNING id INTO memory_id;
    operation := 'INSERT_NEW';
    RETURN NEXT;
    RETURN;
  END IF;
  UPDATE episodic_memories SET confidence = least(confidence + 0.5, 10.0), access_count = access_count + 1, updated_at = clock_timestamp(), last_key = '',
    nearness = memory_nearness(near.similarity)
  WHERE id = near.id;
  memory_id := near.id;
  operation := 'SKIP_DUPLICATE';
  similar_memory_id := near.id;
  similar_memory_content := near.content;
  similarity_score := near.similarity;
  RETURN NEXT;
END
$$;

-- p_run_id is taken and not looked at: what was learned in another run is known too.
-- Who switched memory off has none to be found.
-- The indexes of vectors are asked only for a person who has a good part of all
-- memories: for others they would lead through everybody else's and miss some.
CREATE OR REPLACE FUNCTION retrieve_similar_categorized_memories(
  p_user_id VARCHAR(100), p_run_id UUID, p_embedding vector(384), p_threshold FLOAT DEFAULT 0.35, p_limit INTEGER DEFAULT 10
) RETURNS TABLE (memory_type TEXT, memory_id BIGINT, content TEXT, similarity FLOAT, metadata JSONB)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  model TEXT := memory_model();
  facts BIGINT[];
  episodes BIGINT[];
BEGIN
  PERFORM memory_check(p_user_id, p_embedding, p_threshold);
  IF p_limit IS NULL OR p_limit < 0 OR p_limit > 1000 THEN
    RAISE EXCEPTION 'p_limit is from 0 to 1000, not %', p_limit USING ERRCODE = '22023';
  END IF;
  p_user_id := memory_person_of(p_user_id);
  IF EXISTS (SELECT 1 FROM memory_people WHERE user_id = p_user_id AND NOT enabled) THEN
    RETURN;
  END IF;
  facts := memory_near('semantic', p_user_id, model, p_embedding, p_limit);
  episodes := memory_near('episodic', p_user_id, model, p_embedding, p_limit);
  RETURN QUERY
    SELECT a.kind, a.id, a.body, a.score, a.data FROM (
      SELECT 'semantic'::text AS kind, m.id, m.fact AS body, 1 - (v.embedding <=> p_embedding) AS score, jsonb_build_object(
        'confidence', m.confidence, 'access_count', m.access_count, 'category', m.category, 'created_at', m.created_at, 'updated_at', m.updated_at) AS data
      FROM semantic_memories m JOIN semantic_vectors v ON v.id = m.id WHERE m.id = ANY (facts)
      UNION ALL
      SELECT 'episodic', m.id, m.content, 1 - (v.embedding <=> p_embedding), jsonb_build_object(
        'confidence', m.confidence, 'access_count', m.access_count, 'sources', m.sources, 'created_at', m.created_at, 'updated_at', m.updated_at,
        'expires_at', m.expires_at)
      FROM episodic_memories m JOIN episodic_vectors v ON v.id = m.id WHERE m.id = ANY (episodes)
    ) a WHERE a.score >= p_threshold AND a.score <= 1.001 ORDER BY a.score DESC, a.kind DESC, a.id LIMIT p_limit;
END
$$;

-- memory_near returns ids of the nearest memories of a person.
CREATE OR REPLACE FUNCTION memory_near(p_kind TEXT, p_user_id VARCHAR, p_model TEXT, p_embedding vector, p_limit INTEGER) RETURNS BIGINT[]
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
  source CONSTANT TEXT := format('FROM %I m JOIN %I v ON v.id = m.id WHERE m.user_id = $1 AND m.codebase_id IS NULL AND m.embedding_model = $2%s',
    p_kind || '_memories', p_kind || '_vectors', CASE p_kind WHEN 'episodic' THEN ' AND m.expires_at > now()' ELSE '' END);
  found BIGINT[];
  many BOOLEAN := false;
BEGIN
  -- Without iterative scans, of pgvector 0.8, an index returns its few nearest and no more.
  IF current_setting('hnsw.iterative_scan', true) IS NOT NULL AND EXISTS (
    SELECT 1 FROM pg_index x WHERE x.indexrelid = to_regclass(p_kind || '_embedding_idx') AND x.indisvalid
  ) THEN
    EXECUTE format('SELECT count(*) >= greatest(5000, (SELECT reltuples / 10 FROM pg_class WHERE oid = %L::regclass)) FROM (
      SELECT 1 FROM %I m WHERE m.user_id = $1 AND m.embedding_model = $2) x', p_kind || '_memories', p_kind || '_memories')
      INTO many USING p_user_id, p_model;
  END IF;
  IF many THEN
    PERFORM set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', '200', true);
    EXECUTE 'SELECT array_agg(id) FROM (SELECT m.id ' || source || ' ORDER BY v.embedding <=> $3 LIMIT $4) x'
      INTO found USING p_user_id, p_model, p_embedding, p_limit;
  ELSE
    EXECUTE 'WITH own AS MATERIALIZED (SELECT m.id, v.embedding <=> $3 AS distance ' || source || ')
      SELECT array_agg(id) FROM (SELECT id FROM own WHERE distance >= -0.001 AND distance < 2.001 ORDER BY distance, id LIMIT $4) x'
      INTO found USING p_user_id, p_model, p_embedding, p_limit;
  END IF;
  RETURN COALESCE(found, '{}');
END
$$;

REVOKE EXECUTE ON FUNCTION upsert_semantic_memory_smart, insert_episodic_memory_smart, retrieve_similar_categorized_memories FROM PUBLIC;
