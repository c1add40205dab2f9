-- The history: what became of every row, and what everybody was told who brought a result. Written in the transaction of the
-- change itself, so that it says exactly what was committed.
create schema chaos;
create table chaos.history (
    seq       bigint      generated always as identity primary key,
    at        timestamptz not null default clock_timestamp(),
    item      bigint      not null,
    what      text        not null,
    agent     text,
    lease     bigint,
    owner_id  bigint,
    created   timestamptz,
    due       timestamptz,
    lost      integer,
    was       text,
    was_lease bigint,
    was_due   timestamptz,
    outcome   text
);
grant usage on schema chaos to public;
grant insert on chaos.history to public;
grant select on public.harvest to public;

create function chaos.note() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if tg_op = 'INSERT' then
        insert into chaos.history (item, what, owner_id, created, due) values (new.id, 'arrived', new.owner_id, new.created_at, new.due_at);
    else
        insert into chaos.history (item, what, agent, lease, due, lost, was, was_lease, was_due)
        values (new.id, new.status, new.agent, new.lease, new.due_at, new.lost, old.status, old.lease, old.due_at);
    end if;
    return null;
end
$$;
-- By their names claims take them for the engine's own, and go the way they go on a table without triggers.
create trigger zz_gleaner_history_insert after insert on public.harvest for each row execute function chaos.note();
create trigger zz_gleaner_history_update after update on public.harvest for each row
    when (old.status is distinct from new.status or old.lease is distinct from new.lease) execute function chaos.note();

-- Who brought a result under which lease is nowhere in the row. So the act is listened to.
alter function gleaner.complete_harvest_many(bigint[], bigint[], jsonb[]) rename to complete_harvest_unwatched;
create function gleaner.complete_harvest_many(p_ids bigint[], p_leases bigint[], p_results jsonb[] default null)
returns table (ids bigint[], outcome text, status text) language plpgsql as $$
declare
    v_ids      bigint[];
    v_outcomes text[];
    v_statuses text[];
begin
    select array_agg(a.id), array_agg(a.outcome), array_agg(a.status)
    into v_ids, v_outcomes, v_statuses
    from (select unnest(g.ids) as id, g.outcome, g.status from gleaner.complete_harvest_unwatched(p_ids, p_leases, p_results) as g) as a;
    insert into chaos.history (item, what, lease, outcome)
    select p.id, 'answered', p.lease, p.outcome
    from (
        select u.id, u.lease,
               -- An agent that has an item twice, under an old lease and a new one, may bring both results at once. Answers name the
               -- item alone, and the better outcome sorts first: it belongs to the lease that the row has.
               case when count(*) over (partition by u.id) = 1 or h.lease = u.lease then a.outcome else 'lost' end as outcome
        from unnest(p_ids, p_leases) as u (id, lease)
        join (select distinct on (x.id) x.id, x.outcome
              from unnest(v_ids, v_outcomes) as x (id, outcome)
              order by x.id, x.outcome) as a on a.id = u.id
        left join public.harvest as h on h.id = u.id
    ) as p;
    return query
    select array_agg(x.id), x.outcome, x.status from unnest(v_ids, v_outcomes, v_statuses) as x (id, outcome, status) group by x.outcome, x.status;
end
$$;

-- Items are numbered; the number says whose they are and of which kind. One in twenty takes a while.
create function chaos.feed(p_from bigint, p_to bigint) returns void language plpgsql as $$
begin
    insert into public.harvest (id, owner_id, kind, payload)
    select n,
           case when n * 7919 % 100 < 18 then 1 when n * 7919 % 100 < 36 then 2 when n * 7919 % 100 < 54 then 3
                when n * 7919 % 100 < 64 then 4 when n * 7919 % 100 < 74 then 5 end,
           case when n * 31 % 20 = 0 then 'slow' else 'quick' end,
           jsonb_build_object('source_type', 'text', 'content', 'Sheaf number ' || n || ' lies in the barn.')
    from generate_series(p_from, p_to) as n
    on conflict do nothing;
    perform pg_notify('gleaner', 'harvest');
end
$$;
