-- What the demo begins with.
insert into public.contacts (first_name, last_name, title, email, phone_number, tags) values
    ('Grace', 'Hopper', 'Rear admiral', 'grace@example.com', '+14155550101', array['customer']),
    ('Ann', 'Lee', 'Head of operations', 'ann@example.com', '+14155550102', array['lead']),
    ('Carlos', 'Diaz', 'Logistics', 'carlos@example.com', '+34611555010', array['customer']),
    ('Bob', 'Meyer', 'Managing director', 'bob@meyer.example', '+49305550105', array['customer', 'renewal']),
    ('Mei', 'Tanaka', null, 'mei@example.com', '+81355550103', null);

insert into public.contact_preferences (contact_id, time_zone, approval)
select c.id, case c.first_name when 'Mei' then 'Asia/Tokyo' else 'Europe/Berlin' end, c.first_name = 'Bob' from public.contacts as c where c.first_name in ('Mei', 'Bob');
insert into public.scheduled_actions (prospect_id, contact_id, scheduled_for, payload)
select 'contact:' || c.id, c.id, now() + p.after, jsonb_build_object('text', p.text) || case when p.asks then '{"approval": true}' else '{}' end::jsonb
from (values ('Grace', interval '20 hours', 'Hello Grace, does the new version export your large files?', false),
             ('Ann', interval '2 days', 'Hello Ann, did you have time to look at the offer?', false),
             ('Bob', interval '4 hours', 'Hello Bob, shall we meet on Wednesday at 2 pm?', true),
             ('Mei', interval '9 days', 'Hello Mei, how was the trial?', false)) as p (name, after, text, asks)
join public.contacts as c on c.first_name = p.name;

with workspace as (insert into public.workspaces (name) values ('Research') returning id),
     member as (insert into public.workspace_members (workspace_id, user_id, role) select w.id, u.id, 'owner' from workspace as w, auth.users as u returning workspace_id),
     basket as (insert into public.baskets (workspace_id, name) select w.id, 'Inbox' from workspace as w returning id)
insert into public.raw_dumps (basket_id, body_md)
select b.id, t.text from basket as b, (values
    (E'# Pump trial\n\nAda Lovelace of Meyer AG tested the pumps in Hamburg.\nThe second pump leaks above 40 bar.\nPlease send Ada Lovelace the invoice by Friday.\nWho pays for the pumps?\n'),
    (E'# Notes of the board\n\nMeyer AG renews for two years. Grace Hopper wants exports above 2 GB.\nDecision: the export is rewritten before December.\nTo do: Bob Meyer gets the plan by Monday.\n')) as t (text);

insert into gleaner.jobs (kind, status, due_at, created_at, finished_at, result)
select 'report', 'done', null, now() - n * interval '2 minutes', now() - n * interval '2 minutes' + (2 + n % 7) * interval '1 second', '{"pages": 3}'
from generate_series(1, 28) as n;
insert into gleaner.jobs (kind, status, due_at, attempts, created_at, error)
select 'sync', 'failed', null, 3, now() - n * interval '7 minutes', jsonb_build_object('type', 'Timeout', 'message', 'no answer from the calendar within ' || 10 * n || ' s')
from generate_series(1, 4) as n;
insert into gleaner.jobs (kind, due_at, payload) values ('report', now() + interval '3 hours', '{"name": "weekly figures"}'), ('sync', now() + interval '30 minutes', '{"calendar": "sales"}');
