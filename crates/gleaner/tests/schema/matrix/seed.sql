-- At least one row in every relation, and one of each owner where it matters whose row it is. Owners: 1 a member, 2 a member
-- who keeps work private, 3 an administrator, 4 a member who was disabled. The user without a row in sales has no number.
insert into public.sales (id, first_name, email, user_id, administrator, disabled, allow_remote_processing) values
    (1, 'member',  'member@example.com',  '00000000-0000-0000-0000-000000000001', false, false, true),
    (2, 'private', 'private@example.com', '00000000-0000-0000-0000-000000000002', false, false, false),
    (3, 'admin',   'admin@example.com',   '00000000-0000-0000-0000-000000000003', true,  false, true),
    (4, 'former',  'former@example.com',  '00000000-0000-0000-0000-000000000004', true,  true,  true);
insert into public.contacts (id, first_name, email, sales_id) values
    (1, 'Bob', 'bob@example.com', null), (2, 'Eve', 'eve@example.com', 1), (3, 'Joe', 'joe@example.com', 2);
insert into public.ingestion_providers (provider_code, name, sales_id) values ('gmail', 'mailbox', 2);
insert into public.crm_processing_nodes (sales_id, device_name) values (1, 'laptop'), (2, 'laptop'), (4, 'laptop');

-- What the worker holds was nobody's: it is claimed with the key's own claims before the others are there.
insert into gleaner.api_key (id, name, role, hash, hint) values ('00000000-0000-0000-0000-00000000000e', 'whisper', 'worker', '\x00', 'sb_secret_…');
insert into public.activities (id, type, raw_data) values ('00000000-0000-0000-0000-0000000000f0', 'sms', '{"of": "the worker"}');
begin;
select set_config('request.jwt.claims', gleaner.verify_key('\x00')::text, true);
set local role authenticated;
select from gleaner.claim_activities('whisper', p_started => true);
commit;
-- Long past every owner's threshold.
insert into public.activities (id, type, sales_id, raw_data, created_at) values
    ('00000000-0000-0000-0000-0000000000f1', 'call', 1, '{"of": "member"}', now() - interval '1 hour'),
    ('00000000-0000-0000-0000-0000000000f2', 'call', 2, '{"of": "private"}', now() - interval '1 hour'),
    ('00000000-0000-0000-0000-0000000000f9', 'call', null, '{"of": "nobody"}', now() - interval '1 hour');
insert into public.activity_failures (original_activity_id, failure_reason, raw_data)
select id, 'broken', raw_data from public.activities;

-- A dump of every state the views look at, and one that a worker holds.
insert into public.workspaces (id, name) values ('00000000-0000-0000-0000-0000000000aa', 'team');
insert into public.workspace_members values ('00000000-0000-0000-0000-0000000000aa', '00000000-0000-0000-0000-000000000001', 'owner');
insert into public.workspace_invitations (workspace_id, email, token_hash) values ('00000000-0000-0000-0000-0000000000aa', 'new@example.com', '\x00');
insert into public.baskets (id, workspace_id) values ('00000000-0000-0000-0000-0000000000bb', '00000000-0000-0000-0000-0000000000aa');
insert into public.raw_dumps (basket_id, body_md) select '00000000-0000-0000-0000-0000000000bb', state
from unnest('{pending,held,stuck,failed,completed}'::text[]) as state;
insert into public.blocks (basket_id, title, semantic_type) values ('00000000-0000-0000-0000-0000000000bb', 'insight', 'fact');
insert into public.context_items (basket_id, kind, label) values ('00000000-0000-0000-0000-0000000000bb', 'person', 'Bob');
insert into public.context_item_sources (context_item_id) select id from public.context_items;
insert into public.substrate_relationships (basket_id, from_type, from_id, to_type, to_id, relationship_type)
values ('00000000-0000-0000-0000-0000000000bb', 'block', gen_random_uuid(), 'context_item', gen_random_uuid(), 'mentions');
insert into public.scheduled_actions (prospect_id, action_type, scheduled_for) values
    ('waiting', 'email', now()), ('held', 'email', now()), ('contact:2', 'email', now()), ('contact:3', 'email', now());
insert into public.followup_schedules (prospect_id, cron) values ('contact:2', '@daily');
insert into public.execution_jobs (recording_id) values ('waiting'), ('held');
insert into public.recordings (name) values ('of the service key'), ('of the member');
update public.recordings set created_by = '00000000-0000-0000-0000-000000000001' where name = 'of the member';
insert into public.recording_versions (recording_id, content)
select id, '{"steps": [{"do": "open", "url": "https://a.example"}]}' from public.recordings where name = 'of the service key';
insert into public.run_rows (run_id, row_number, status, duration_ms) select id, 1, 'passed', 1 from public.execution_jobs;
insert into public.run_artefacts (run_id, row_number, step, name, media_type, size, sha256, expires_at)
select id, 1, 1, 'x', 'image/png', 1, repeat('0', 64), now() from public.execution_jobs;
insert into public.run_sites values ('a.example:443', 1);
begin;
-- As the engine would write them; the worker's key is no worker of these queues here, but a declaration may make it one.
set local role gleaner_engine;
update public.agent_processing_queue as q
set processing_state = s.state::public.processing_state, attempts = 3, claimed_at = now() - interval '1 hour', completed_at = now(),
    claimed_by = s.holder, session = s.session
from public.raw_dumps as d, (values
    ('held', 'claimed', 'the worker', '00000000-0000-0000-0000-00000000000e/00000000-0000-0000-0000-00000000000e'),
    ('stuck', 'claimed', 'other', 'other'), ('failed', 'failed', 'other', 'other'), ('completed', 'completed', 'other', 'other')
) as s (body, state, holder, session)
where d.id = q.dump_id and d.body_md = s.body;
update public.scheduled_actions set status = 'processing', session = '00000000-0000-0000-0000-00000000000e/00000000-0000-0000-0000-00000000000e'
where prospect_id = 'held';
update public.execution_jobs set status = 'running', session = '00000000-0000-0000-0000-00000000000e/00000000-0000-0000-0000-00000000000e'
where recording_id = 'held';
commit;

insert into gleaner.jobs (kind) values ('report');
insert into gleaner.polls (provider_id) select id from public.ingestion_providers on conflict do nothing;
insert into gleaner.request (queue, id, at) values ('jobs', gen_random_uuid(), now());
insert into gleaner.change (relation, kind, new_row) values ('public.activities'::regclass, 'I', '()');
insert into gleaner.late_result (queue, key, lease)
select 'activities', id::text, 1 from public.activities union all values ('jobs', 'x', 1);
insert into gleaner.bulk_range values ('jobs', 'x', 0, 'infinity', 2000000, 2000001);
insert into gleaner.batch_lease (queue, keys, mark, remaining, session, due_at, deadline_at) values ('jobs', '{[1000000, 1000001)}', 0, 1, 'x', 'infinity', 'infinity');
insert into gleaner.operation (queue, act, filter, caller, total) values ('x', 'requeue', '{}', 'x', 1);
insert into gleaner.pause (queue, caller) values ('x', 'x');
insert into gleaner.prune_mark (queue, begins, oldest) values ('jobs', 1, 'infinity');
insert into gleaner.rejected_row (queue, key, until, reason) values ('jobs', 'x', now(), 'x');
insert into gleaner.adopted_table (name, system, own_rights) values ('x', 'crm', true);
insert into gleaner.audit (queue, key, act, caller)
select 'activities', id::text, 'bury', 'x' from public.activities union all values ('jobs', 'x', 'bury', 'x');
insert into gleaner.raw_request (id, provider_id, received_at, method, target, outcome) values (gen_random_uuid(), gen_random_uuid(), now(), 'POST', '/', 'stored');
insert into gleaner.ingest_memory (provider_id, key, expires_at) values (gen_random_uuid(), 'x', now());
insert into gleaner.forgotten_files (activity_id) values (gen_random_uuid());
insert into gleaner.media_reference (activity_id, provider_id, media)
select a.id, gen_random_uuid(), '[]' from public.activities as a limit 1;
insert into gleaner.forgotten_artefacts (artefact_id, run_id, sha256) values (gen_random_uuid(), gen_random_uuid(), 'x');
insert into gleaner.forgotten_dump_files (dump_id, sha256) values (gen_random_uuid(), 'x');
insert into gleaner.ingest_refusal (at_minute, reason, status, count, last_at) values (now(), 'mismatch', 401, 1, now());

insert into auth.users (id, email) values ('00000000-0000-0000-0000-000000000001', 'member@example.com');
insert into gleaner.deleted_user (id) values (gen_random_uuid());
insert into auth.identities (provider_id, user_id, identity_data, provider) values ('x', '00000000-0000-0000-0000-000000000001', '{}', 'email');
insert into auth.sessions (id, user_id) values ('00000000-0000-0000-0000-0000000000cc', '00000000-0000-0000-0000-000000000001');
insert into auth.refresh_tokens (token, user_id, session_id)
values ('x', '00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-0000000000cc');
insert into auth.one_time_tokens (user_id, token_type, token_hash, relates_to, expires_at)
values ('00000000-0000-0000-0000-000000000001', 'recovery', 'x', 'member@example.com', now());

insert into public.contact_identities (contact_id, kind, value) select id, 'telegram', '1' from public.contacts limit 1;
insert into public.contact_preferences (contact_id) values (1), (null);
insert into public.do_not_contact (address, reason) values ('x@example.com', 'asked for it');
