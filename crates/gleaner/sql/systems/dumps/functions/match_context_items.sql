/*
 * The stored entities that a list [{kind, label, metadata}, …] names, once each, with what the list says of them: the last
 * metadata of each wins.
 */
create or replace function gleaner.match_context_items(p_basket_id uuid, p_items jsonb) returns table (id uuid, metadata jsonb)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select distinct on (c.id) c.id, case when jsonb_typeof(given.item -> 'metadata') = 'object' then given.item -> 'metadata' else '{}' end
    from jsonb_array_elements(p_items) with ordinality as given (item, n)
    join public.context_items as c
      on c.basket_id = p_basket_id
     and c.kind = given.item ->> 'kind'
     and md5(lower(btrim(regexp_replace(c.label, '\s+', ' ', 'g')))) = md5(gleaner.same_label(given.item ->> 'label'))
    order by c.id, given.n desc
$$;
comment on function gleaner.match_context_items(uuid, jsonb) is 'The stored entities that a list names, and what it says of them.';
revoke all on function gleaner.match_context_items(uuid, jsonb) from public, anon, authenticated;
grant execute on function gleaner.match_context_items(uuid, jsonb) to service_role;
