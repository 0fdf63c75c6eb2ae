-- 00012, works with binaries from 00001: memories are found by their words
-- The words are prepared by the program, alike for both databases, so no
-- dictionary of a language is applied to them here.

-- +goose Up
ALTER TABLE episodic_memories ADD COLUMN words tsvector
  GENERATED ALWAYS AS (array_to_tsvector(array_remove(string_to_array(terms, ' '), ''))) STORED;
ALTER TABLE semantic_memories ADD COLUMN words tsvector
  GENERATED ALWAYS AS (array_to_tsvector(array_remove(string_to_array(terms, ' '), ''))) STORED;

CREATE INDEX idx_episodic_memories_words ON episodic_memories USING gin (words);
CREATE INDEX idx_semantic_memories_words ON semantic_memories USING gin (words);
