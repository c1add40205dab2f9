/*
 * Refuses a plain update of what a queue with batch leases changes by acts alone: its key, its status, its times, its lease; and its kind,
 * priority and unique key, which a bulk range says of many rows at once. Such a row does not say itself whether it is held, so that no trigger could tell a claim from a theft.
 */
create or replace function gleaner.refuse_update() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    raise insufficient_privilege using
        message = format('key, status, times, lease and what decides the place in the line of %s are changed by acts alone', tg_relid::regclass),
        hint = format('Call gleaner.cancel_%1$s, gleaner.requeue_%1$s or gleaner.bury_%1$s, or use `gleaner items`. Other columns are yours to update.', tg_argv[0]);
end
$$;
comment on function gleaner.refuse_update() is 'Refuses a plain update of what a queue with batch leases changes by acts alone.';
revoke all on function gleaner.refuse_update() from public, anon, authenticated;
