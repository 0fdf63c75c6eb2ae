-- 00044, works with binaries from 00043: words are found with and without their accents
-- The tokenizer takes accents off Latin letters, composed or not. The index is made anew
-- by and by.

-- +goose Up
DROP TABLE agent_messages_fts;

CREATE VIRTUAL TABLE agent_messages_fts USING fts5(
  body, content = 'agent_messages_searchable', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2');

-- What is deleted leaves no words behind, see 00021.
INSERT INTO agent_messages_fts(agent_messages_fts, rank) VALUES ('secure-delete', 1);
