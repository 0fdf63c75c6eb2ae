-- What a database of schema 27 had in it: at least one row in every table. It was
-- written when 27 was the newest schema, and is never changed.
INSERT INTO remote_agent_codebases (id, name, repository_url, default_cwd, ai_assistant_type, commands)
VALUES ('0190c0de-0000-7000-8000-000000000001', 'acme/shop', 'https://github.com/acme/shop', 'github.com/acme/shop', 'openai', '{"review":{"path":".claude/commands/review.md","description":"Review a change"}}');
INSERT INTO agents (id, name, description, system_prompt, lore)
VALUES ('0190a9e7-0000-7000-8000-000000000001', 'reviewer', 'Reads what others wrote', 'You review.', '["was a gardener"]');
INSERT INTO models_config (fast, smart, cheap)
VALUES ('{"provider":"openai","model":"m-1"}', '{"provider":"openai","model":"m-2"}', '{"provider":"openai","model":"m-0"}');
INSERT INTO remote_agent_conversations (id, platform_type, platform_conversation_id, codebase_id, cwd, ai_assistant_type, inbox_seq, stop_seq, delivery_seq, lease_owner, lease_epoch, settings, agent_id)
VALUES ('0190c042-0000-7000-8000-000000000001', 'telegram', '42', '0190c0de-0000-7000-8000-000000000001', 'src', 'openai', 3, 0, 2, 'a process that is gone', 7, '{"mode":"ask"}', '0190a9e7-0000-7000-8000-000000000001'),
       ('0190c042-0000-7000-8000-000000000002', 'slack', 'T1/C1/1700000000.000100', NULL, NULL, 'openai', 0, 0, 0, NULL, 0, '{}', NULL);
INSERT INTO remote_agent_sessions (id, conversation_id, codebase_id, ai_assistant_type, active, metadata, ended_at, model, user_prompt, status, result, input_tokens, output_tokens, last_seq)
VALUES ('01905e55-0000-7000-8000-000000000001', '0190c042-0000-7000-8000-000000000001', '0190c0de-0000-7000-8000-000000000001', 'openai', false, '{"lastCommand":"plan-feature"}', '2026-11-01T10:00:00.000Z', 'm-2', '/plan add a flag', 'completed', 'A plan.', 900, 80, 2);
INSERT INTO remote_agent_sessions (id, conversation_id, codebase_id, ai_assistant_type, active, metadata, model, user_prompt, status, input_tokens, output_tokens, last_seq, parent_session_id, agent_id)
VALUES ('01905e55-0000-7000-8000-000000000002', '0190c042-0000-7000-8000-000000000001', '0190c0de-0000-7000-8000-000000000001', 'openai', true, '{}', 'm-2', 'why does it panic?', 'running', 1200, 300, 4, '01905e55-0000-7000-8000-000000000001', '0190a9e7-0000-7000-8000-000000000001');
INSERT INTO inbound_events (id, platform_type, account, event_id, conversation_id, seq, lane, state, attempts, session_id, message_id, data, accepted_ms, sender)
VALUES ('0190e000-0000-7000-8000-000000000001', 'telegram', '7', '101', '0190c042-0000-7000-8000-000000000001', 1, 'turn', 'done', 1, '01905e55-0000-7000-8000-000000000001', '11', '{"Text":"/plan add a flag"}', 1761990000000, '42'),
       ('0190e000-0000-7000-8000-000000000002', 'telegram', '7', '102', '0190c042-0000-7000-8000-000000000001', 2, 'turn', 'running', 1, '01905e55-0000-7000-8000-000000000002', '12', '{"Text":"why does it panic?"}', 1761991000000, '42'),
       ('0190e000-0000-7000-8000-000000000003', 'telegram', '7', '103', '0190c042-0000-7000-8000-000000000001', 3, 'control', 'done', 1, NULL, '13', '{"Text":"/status"}', 1761992000000, '42');
INSERT INTO agent_runs (session_id, number, entry_id, status, started_ms, finished_ms, duration_ms, model, input_tokens, output_tokens, cost_micros)
VALUES ('01905e55-0000-7000-8000-000000000001', 1, '0190e000-0000-7000-8000-000000000001', 'completed', 1761990000100, 1761990009100, 9000, 'm-2', 900, 80, 1234);
INSERT INTO agent_runs (session_id, number, entry_id, status, started_ms)
VALUES ('01905e55-0000-7000-8000-000000000002', 1, '0190e000-0000-7000-8000-000000000002', 'running', 1761991000100);
INSERT INTO agent_messages (session_id, role, content, created_at, seq, kind, data_json, run_id)
VALUES ('01905e55-0000-7000-8000-000000000001', 'user', 'add a flag', 1761990000, 1, 'text', NULL, '0190e000-0000-7000-8000-000000000001'),
       ('01905e55-0000-7000-8000-000000000001', 'assistant', 'A plan.', 1761990009, 2, 'text', NULL, '0190e000-0000-7000-8000-000000000001'),
       ('01905e55-0000-7000-8000-000000000002', 'user', 'why does it panic?', 1761991000, 3, 'text', NULL, '0190e000-0000-7000-8000-000000000002'),
       ('01905e55-0000-7000-8000-000000000002', 'assistant', '', 1761991002, 4, 'tool_call', '{"tool_call_id":"call-1","name":"read","arguments":"{\"path\":\"pool.go\"}"}', '0190e000-0000-7000-8000-000000000002');
INSERT INTO agent_tool_calls (session_id, message_id, tool_call_id, tool_name, request, status, created_at, executing_ms)
VALUES ('01905e55-0000-7000-8000-000000000002', 4, 'call-1', 'read', '{"path":"pool.go"}', 'executing', 1761991002, 1761991002500);
INSERT INTO deliveries (id, conversation_id, event_id, seq, reply_to, body, final, message_id, state, attempts, created_ms)
VALUES ('0190de11-0000-7000-8000-000000000001', '0190c042-0000-7000-8000-000000000001', '0190e000-0000-7000-8000-000000000001', 1, '11', 'A plan.', true, '501', 'sent', 1, 1761990009000),
       ('0190de11-0000-7000-8000-000000000002', '0190c042-0000-7000-8000-000000000001', '0190e000-0000-7000-8000-000000000002', 2, '12', '', false, '', 'sending', 0, 1761991000100);
INSERT INTO plan_numbers (conversation_id) VALUES ('0190c042-0000-7000-8000-000000000001');
INSERT INTO plans (id, number, version, conversation_id, session_id, event_id, goal, body, sha256, author, requester, state, delivery_id, created_ms, expires_ms)
VALUES ('01909a00-0000-7000-8000-000000000001', 1, 1, '0190c042-0000-7000-8000-000000000001', '01905e55-0000-7000-8000-000000000001', '0190e000-0000-7000-8000-000000000001', 'add a flag', 'A plan.', '1111111111111111111111111111111111111111111111111111111111111111', 'openai', 'telegram/42', 'proposed', '0190de11-0000-7000-8000-000000000001', 1761990009000, 4102444800000);
INSERT INTO buttons (id, conversation_id, decision, plan_number, sha256, expires_ms)
VALUES ('b-1', '0190c042-0000-7000-8000-000000000001', 'approve', 1, '1111111111111111111111111111111111111111111111111111111111111111', 4102444800000);
INSERT INTO approvals (conversation_id, session_id, event_id, codebase_id, tool_call_id, tool_name, request, sha256, kind, title, requester, state, decided_by, decided_ms, created_ms, expires_ms)
VALUES ('0190c042-0000-7000-8000-000000000001', '01905e55-0000-7000-8000-000000000001', '0190e000-0000-7000-8000-000000000001', '0190c0de-0000-7000-8000-000000000001', 'call-0', 'shell', '{"command":"go test ./..."}', '2222222222222222222222222222222222222222222222222222222222222222', 'execute', 'run go test ./...', 'telegram/42', 'allowed', 'telegram/42', 1761990005000, 1761990004000, 4102444800000);
INSERT INTO allow_rules (codebase_id, tool_name, rule, created_by, created_ms)
VALUES ('0190c0de-0000-7000-8000-000000000001', 'shell', 'go test ./...', 'telegram/42', 1761990005000);
INSERT INTO checkpoints (event_id, conversation_id, session_id, inbox_seq, seq, ref, created_ms)
VALUES ('0190e000-0000-7000-8000-000000000001', '0190c042-0000-7000-8000-000000000001', '01905e55-0000-7000-8000-000000000001', 1, 1, 'refs/bot/checkpoints/1', 1761990000050);
INSERT INTO usage_records (event_id, conversation_id, session_id, codebase_id, actor, ai_assistant_type, model, input_tokens, output_tokens, cost_micros, at_ms)
VALUES ('0190e000-0000-7000-8000-000000000001', '0190c042-0000-7000-8000-000000000001', '01905e55-0000-7000-8000-000000000001', '0190c0de-0000-7000-8000-000000000001', 'telegram/42', 'openai', 'm-2', 900, 80, 1234, 1761990009000);
INSERT INTO agent_schedules (agent_id, conversation_id, created_by, origin, next_ms, created_ms)
VALUES ('0190a9e7-0000-7000-8000-000000000001', '0190c042-0000-7000-8000-000000000001', 'telegram/42', '{"Conversation":{"Platform":"telegram","ID":"42"}}', 4102444800000, 1761990000000);
INSERT INTO identities (platform_type, user_id, name, role, created_ms, granted_by, granted_ms)
VALUES ('telegram', '42', 'Ann', 'owner', 1761980000000, 'code', 1761980000000);
INSERT INTO owner_codes (platform_type, code_hash, expires_ms)
VALUES ('slack', '3333333333333333333333333333333333333333333333333333333333333333', 1761980900000);
INSERT INTO api_keys (id, name, secret_hash, scopes, created_ms)
VALUES ('k1', 'dashboard', '4444444444444444444444444444444444444444444444444444444444444444', 'sessions:read', 1761980000000);
INSERT INTO memory_people (user_id, seq) VALUES ('telegram/42', 2);
INSERT INTO memory_accounts (account, user_id, conversation_id, linked_ms)
VALUES ('telegram/42', 'telegram/42', '0190c042-0000-7000-8000-000000000001', 1761980000000);
INSERT INTO semantic_memories (user_id, run_id, fact, confidence, category, seq, origin, content_hash)
VALUES ('telegram/42', '0190e000-0000-7000-8000-000000000001', 'prefers table tests', 0.9, 'preference', 1, 'person', '5555555555555555555555555555555555555555555555555555555555555555');
INSERT INTO episodic_memories (user_id, run_id, content, expires_at, seq, content_hash)
VALUES ('telegram/42', '0190e000-0000-7000-8000-000000000001', 'planned a flag for the shop', '2100-01-01T00:00:00.000Z', 2, '6666666666666666666666666666666666666666666666666666666666666666');
INSERT INTO memory_lessons (entry_id, account, conversation_id, next_ms)
VALUES ('0190e000-0000-7000-8000-000000000001', 'telegram/42', '0190c042-0000-7000-8000-000000000001', 4102444800000);
INSERT INTO link_codes (account, code_hash, conversation_id, expires_ms)
VALUES ('slack/T1/U1', '7777777777777777777777777777777777777777777777777777777777777777', '0190c042-0000-7000-8000-000000000002', 1761980900000);
INSERT INTO link_tries (account, tries, since_ms) VALUES ('slack/T1/U1', 1, 1761980000000);
INSERT INTO platform_cursors (name, position, updated_ms) VALUES ('telegram/7', '104', 1761992000000);
INSERT INTO named_leases (name, owner, lease_until) VALUES ('learn', 'a process that is gone', 1761992000000);
INSERT INTO audit_log (at_ms, actor, action, conversation_id, target)
VALUES (1761990009000, 'telegram/42', 'plan.approve', '0190c042-0000-7000-8000-000000000001', 'p-1');
