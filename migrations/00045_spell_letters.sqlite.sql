-- 00045, works with binaries from 00045: łódź is found as lodz, and straße as strasse
-- Letters of Latin that have no accent to lose are in the index as they are usually
-- spelled in ASCII. "Spell" of package letters does the same, and faster.

-- +goose Up
DROP VIEW agent_messages_searchable;

-- In stages: other programs' parsers of SQL, such as sqlite3's, refuse one expression that is
-- as deep as all of them.
CREATE VIEW agent_messages_searchable AS
WITH
  spread AS (
    SELECT m.id,
    CASE WHEN m.content NOT GLOB '*' || l.class || '*' THEN substr(m.content, 1, 100000) ELSE (
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
    WHERE m.kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system')),
  one AS (SELECT id, replace(replace(replace(replace(replace(replace(replace(body, 'ł', 'l'), 'Ł', 'l'), 'ø', 'o'), 'Ø', 'o'), 'ǿ', 'o'), 'Ǿ', 'o'), 'đ', 'd') AS body FROM spread),
  two AS (SELECT id, replace(replace(replace(replace(replace(replace(replace(body, 'Đ', 'd'), 'ð', 'd'), 'Ð', 'd'), 'ı', 'i'), 'ß', 'ss'), 'ẞ', 'ss'), 'æ', 'ae') AS body FROM one)
SELECT id, replace(replace(replace(replace(replace(replace(replace(body, 'Æ', 'ae'), 'ǽ', 'ae'), 'Ǽ', 'ae'), 'œ', 'oe'), 'Œ', 'oe'), 'þ', 'th'), 'Þ', 'th') AS body FROM two;

-- The index is made anew, by and by, if there is anything of this.
INSERT INTO agent_messages_fts(agent_messages_fts)
SELECT 'delete-all' WHERE EXISTS (SELECT 1 FROM agent_messages WHERE content GLOB '*[łŁøØǿǾđĐðÐıßẞæÆǽǼœŒþÞ]*');

-- Words of memories are noted again, by and by, where they may be others.
UPDATE semantic_memories SET terms = '' WHERE length(CAST(fact AS BLOB)) > length(fact);
UPDATE episodic_memories SET terms = '' WHERE length(CAST(content AS BLOB)) > length(content);
