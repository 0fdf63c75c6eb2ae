-- 00029, works with binaries from 00001: a message's words are found faster

-- +goose Up
-- The same words as before, in a language that is not set up anew with each call. It
-- is no more spliced into a statement than the other, so that the cost holds.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION agent_message_words(content TEXT) RETURNS tsvector
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 10000 AS $$
BEGIN
  RETURN pg_catalog.to_tsvector('pg_catalog.simple'::pg_catalog.regconfig, pg_catalog.translate(pg_catalog."left"(content, 100000),
    '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~“”„‘’‚«»‹›–—…·•¡¿、。，！？：；（）「」『』 ',
    '                                                               '));
END
$$;
-- +goose StatementEnd
