/*
 * The tables whose changes are noted, or should be: published, with a key to tell them by, in all of their rows (a publication's
 * row filter is for the log to apply).
 * Returns  wanted   which triggers the table should have: kinds, and the numbers of its key's columns; null where none.
 *          present  which it has; null where none or not all.
 */
create or replace function gleaner.list_captures() returns table (relation oid, wanted text, present text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    with wanted as (
        select c.oid as relation,
               concat(case when p.pubinsert then 'I' end, case when p.pubupdate then 'U' end, case when p.pubdelete then 'D' end, ' ',
                      i.indkey::text) as triggers
        from pg_publication as p
        join pg_publication_tables as t on t.pubname = p.pubname
        join pg_namespace as n on n.nspname = t.schemaname
        join pg_class as c on c.relnamespace = n.oid and c.relname = t.tablename
        join pg_index as i on i.indrelid = c.oid and case c.relreplident when 'i' then i.indisreplident else i.indisprimary end
        where p.pubname = 'supabase_realtime' and t.rowfilter is null
    ), present as (
        select t.tgrelid as relation,
               -- One argument, the same for all: what was wanted when they were made.
               case when count(*) = length(replace(split_part(min(a.arguments), ' ', 1), 'U', 'UU')) then min(a.arguments) end as triggers
        from pg_trigger as t
        cross join lateral (select replace(encode(t.tgargs, 'escape'), '\000', '') as arguments) as a
        where t.tgfoid = 'gleaner.note_change()'::regprocedure and t.tgparentid = 0 and t.tgenabled = 'A'
        group by t.tgrelid
    )
    select relation, w.triggers, p.triggers
    from wanted as w
    full join present as p using (relation);
$$;
comment on function gleaner.list_captures() is 'The tables whose changes are noted by triggers, or should be.';
revoke all on function gleaner.list_captures() from public, anon, authenticated, service_role;
