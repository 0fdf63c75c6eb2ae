-- 00045, works with binaries from 00001: łódź is found as lodz, and straße as strasse
-- Letters of Latin that have no accent to lose are in the index as they are usually
-- spelled in ASCII. "Spell" of package letters does the same.

-- +goose Up
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION agent_message_words(content TEXT) RETURNS tsvector
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 10000 AS $$
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
$$;
-- +goose StatementEnd

-- The index is made anew by the program, while others read and write: KeepSearch of package
-- store does so as long as it finds this.
-- +goose StatementBegin
DO $$
BEGIN
  IF getdatabaseencoding() = 'SQL_ASCII' AND EXISTS (SELECT FROM agent_messages) OR EXISTS (SELECT FROM agent_messages WHERE octet_length(content) > length(content)) THEN
    COMMENT ON INDEX idx_agent_messages_words IS 'stale';
  END IF;
END
$$;
-- +goose StatementEnd

-- Words of memories are noted again, by and by, where they may be others.
UPDATE semantic_memories SET terms = '' WHERE octet_length(fact) > length(fact);
UPDATE episodic_memories SET terms = '' WHERE octet_length(content) > length(content);
