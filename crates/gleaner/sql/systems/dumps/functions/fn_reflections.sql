/*
 * Reflections on a basket: what its newest dumps have in common. Computed when it is read and never stored, so that they are
 * never older than the dumps. The caller sees only what row-level security lets it see.
 * Input    the dumps of the last p_days days, at most p_limit.
 * Returns  {pattern, tension, question, reasons: […], dumps, version}: the theme that comes back most, what is to be done set
 *          against it, a question to go on with, and what each rests on. Null where there is too little to say. `version`
 *          changes when the answer may have changed.
 */
create or replace function public.fn_reflections(p_basket_id uuid, p_days integer default 14, p_limit integer default 50) returns jsonb
language sql stable
set search_path = pg_catalog, public, pg_temp
as $$
    with dump as (
        select d.id
        from public.raw_dumps as d
        where d.basket_id = p_basket_id
          and d.created_at > now() - make_interval(days => p_days)
        order by d.created_at desc, d.id
        limit least(p_limit, 500)
    ), item as (
        select c.kind, c.label, count(*) as dumps, row_number() over (partition by c.kind order by count(*) desc, c.label) as place
        from public.context_item_sources as s
        join public.context_items as c on c.id = s.context_item_id
        where s.dump_id in (select dump.id from dump)
        group by c.id, c.kind, c.label
    ), edge as (
        select count(*) as count from public.substrate_relationships as r where r.dump_id in (select dump.id from dump)
    ), theme as (
        select item.label, item.dumps from item where item.kind in ('topic', 'entity') order by item.kind = 'topic' desc, item.place limit 1
    ), task as (
        select item.label, item.dumps from item where item.kind in ('intent', 'task') order by item.kind = 'intent' desc, item.place limit 1
    ), asked as (
        select b.content
        from public.blocks as b
        where b.dump_id in (select dump.id from dump) and b.semantic_type = 'question'
        order by b.created_at desc, b.id
        limit 1
    ), counted as (
        select count(*) as dumps from dump
    )
    select jsonb_build_object(
        'pattern', (select format('%s comes back in %s of %s dumps.', theme.label, theme.dumps, counted.dumps) from theme, counted),
        'tension', (select format('%s is to be done, while most is about %s.', task.label, theme.label) from task, theme),
        'question', coalesce((select asked.content from asked), (select format('What does %s need next?', theme.label) from theme)),
        'reasons', (
            select coalesce(jsonb_agg(reason order by place), '[]') from (
                select 1 as place, format('Theme: %s (%s of %s dumps)', theme.label, theme.dumps, counted.dumps) as reason from theme, counted
                union all
                select 2, format('To do: %s', task.label) from task
                union all
                select 3, format('%s connections between what was found', edge.count) from edge where edge.count > 0
            ) as given),
        'dumps', (select counted.dumps from counted),
        'version', md5(coalesce((select string_agg(item.kind || ':' || item.label || ':' || item.dumps, ',' order by item.kind, item.label) from item), '')
                       || (select edge.count from edge)))
$$;
comment on function public.fn_reflections(uuid, integer, integer) is 'What the newest dumps of a basket have in common, computed on read.';
revoke all on function public.fn_reflections(uuid, integer, integer) from public, anon, authenticated;
grant execute on function public.fn_reflections(uuid, integer, integer) to authenticated, service_role;
