-- 00044, works with binaries from 00001: words are found with and without their accents
-- Letters of Latin lose their accents, others are composed with theirs.

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
    said := regexp_replace(normalize(regexp_replace(normalize(said, NFD), '([A-Za-z])[\u0300-\u036F]+', '\1', 'g'), NFC), '[\u0300-\u036F]+', '', 'g');
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

-- What is in the index already is made anew after 00045.
