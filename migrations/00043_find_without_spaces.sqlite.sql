-- 00043, works with binaries from 00043: what is written without spaces is found
-- Chinese, Japanese, Thai and others put no blanks between words: the index of words took
-- a whole clause for one, with the foreign words in it.

-- +goose Up
DROP TRIGGER agent_messages_fts_insert;
DROP TRIGGER agent_messages_fts_delete;
DROP TRIGGER agent_messages_fts_update;
DROP VIEW agent_messages_searchable;

-- Each letter of such a script is a word together with the one that follows it, and by
-- itself at the end. "spread" of package store does the same, and faster. Parts of a text
-- are taken apart one by one, for to get at its last letter is to read it all.
CREATE VIEW agent_messages_searchable AS
SELECT m.id, CASE WHEN m.content NOT GLOB '*' || l.class || '*' THEN substr(m.content, 1, 100000) ELSE (
  WITH RECURSIVE
    parts(at, part) AS (
      SELECT 1, substr(m.content, 1, 101)
      UNION ALL SELECT at + 100, substr(m.content, at + 100, 101) FROM parts WHERE at + 100 <= min(length(m.content), 100000)),
    places(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM places WHERE i < 100)
  SELECT group_concat(CASE
      WHEN letter NOT GLOB l.class THEN letter
      WHEN next GLOB l.class THEN printf(' u%xx%x ', unicode(letter), unicode(next))
      ELSE printf(' u%xx ', unicode(letter)) END, '')
  FROM (
    SELECT substr(part, i, 1) AS letter, CASE WHEN at + i <= 100000 THEN substr(part, i + 1, 1) ELSE '' END AS next
    FROM parts CROSS JOIN places ORDER BY at, i)
  ) END AS body
FROM agent_messages m CROSS JOIN (SELECT '[' || char(
  0x4E00, 45, 0x9FFF, 0x3041, 45, 0x30FA, 0x30FC, 45, 0x30FF, 0x0E01, 45, 0x0EFF, 0x1000, 45, 0x109F, 0x1780, 45, 0x17FF,
  0x3005, 45, 0x3007, 0x31F0, 45, 0x31FF, 0x3400, 45, 0x4DBF, 0xF900, 45, 0xFAFF, 0xFF66, 45, 0xFF9F, 0x20000, 45, 0x3FFFF) || ']' AS class) l
WHERE m.kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system');

-- The index is made anew, by and by, if there is anything of this.
INSERT INTO agent_messages_fts(agent_messages_fts)
SELECT 'delete-all' WHERE EXISTS (SELECT 1 FROM agent_messages_searchable s JOIN agent_messages m ON m.id = s.id WHERE s.body <> substr(m.content, 1, 100000));

-- +goose StatementBegin
CREATE TRIGGER agent_messages_fts_insert
  AFTER INSERT ON agent_messages
  FOR EACH ROW WHEN NEW.kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system')
    AND NEW.id < (SELECT max(d.id) FROM agent_messages_fts_docsize d)
BEGIN
  INSERT INTO agent_messages_fts(rowid, body) SELECT s.id, s.body FROM agent_messages_searchable s WHERE s.id = NEW.id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER agent_messages_fts_delete
  BEFORE DELETE ON agent_messages
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM agent_messages_fts_docsize d WHERE d.id = OLD.id)
BEGIN
  INSERT INTO agent_messages_fts(agent_messages_fts, rowid, body)
    SELECT 'delete', s.id, s.body FROM agent_messages_searchable s WHERE s.id = OLD.id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER agent_messages_fts_update_old
  BEFORE UPDATE OF id, kind, content ON agent_messages
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM agent_messages_fts_docsize d WHERE d.id = OLD.id)
BEGIN
  INSERT INTO agent_messages_fts(agent_messages_fts, rowid, body)
    SELECT 'delete', s.id, s.body FROM agent_messages_searchable s WHERE s.id = OLD.id;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER agent_messages_fts_update_new
  AFTER UPDATE OF id, kind, content ON agent_messages
  FOR EACH ROW WHEN NEW.id < (SELECT max(d.id) FROM agent_messages_fts_docsize d)
BEGIN
  INSERT INTO agent_messages_fts(rowid, body) SELECT s.id, s.body FROM agent_messages_searchable s WHERE s.id = NEW.id;
END;
-- +goose StatementEnd

-- Words of memories are noted again, by and by, where they would be others.
UPDATE semantic_memories SET terms = '' WHERE fact GLOB '*[' || char(0x30FC, 0x1000, 45, 0x109F) || ']*';
UPDATE episodic_memories SET terms = '' WHERE content GLOB '*[' || char(0x30FC, 0x1000, 45, 0x109F) || ']*';
