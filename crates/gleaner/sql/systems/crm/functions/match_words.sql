/*
 * The newest activities with all these words, as the filters say, before a place in the feed. A word is found by its beginning.
 * Cost     a frequent word is among the newest activities, and a rare one is found by the index of words. One statement for both would
 *          depend on a guess how frequent a beginning is.
 * Limits   among the newest 2,000 that the filters name, and the newest 2,000 that contain the words.
 * Rights   the definer's, because an index of words cannot be used below row-level security. It returns ids alone, and
 *          public.search_activities shows of them what the caller may see.
 * Returns  at most 60, in no order.
 */
create or replace function gleaner.match_words(
    p_text text, p_status text, p_type text, p_owner bigint, p_unowned boolean, p_channel uuid, p_contact bigint, p_before timestamptz, p_id uuid
) returns setof uuid
language plpgsql stable security definer rows 60
set search_path = pg_catalog, pg_temp
-- What is not filtered by is left out of the plan, and words are looked up by the activity.
set plan_cache_mode = force_custom_plan
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_words tsquery;
    v_found uuid[];
    v_seen  bigint;
begin
    select to_tsquery('pg_catalog.simple', string_agg(w || ':*', ' & ')) into v_words
    from regexp_split_to_table(lower(p_text), '[^[:alnum:]]+') as w
    where w <> '';
    select count(*), array_agg(a.id order by a.created_at desc, a.id desc) filter (where w.words @@ v_words)
    into v_seen, v_found
    from (
        select a.id, a.created_at
        from public.activities as a
        where (p_status is null or a.processing_status = p_status)
          and (p_type is null or a.type = p_type)
          and (p_owner is null or a.sales_id = p_owner)
          and (p_unowned is not true or a.sales_id is null)
          and (p_channel is null or a.provider_id = p_channel)
          and (p_contact is null or a.contact_id = p_contact)
          and (p_before is null or a.created_at <= p_before)
          and (p_before is null or a.created_at < p_before or a.id < p_id)
        order by a.created_at desc, a.id desc
        limit 2000
    ) as a
    left join gleaner.activity_words as w on w.activity_id = a.id;
    if v_seen = 2000 and coalesce(cardinality(v_found), 0) < 60 then
        v_found := array(
            select a.id
            from (
                select w.activity_id
                from gleaner.activity_words as w
                where w.words @@ v_words
                  and (p_before is null or w.created_at <= p_before)
                order by w.created_at desc, w.activity_id desc
                limit 2000
            ) as w
            join public.activities as a on a.id = w.activity_id
            where (p_status is null or a.processing_status = p_status)
              and (p_type is null or a.type = p_type)
              and (p_owner is null or a.sales_id = p_owner)
              and (p_unowned is not true or a.sales_id is null)
              and (p_channel is null or a.provider_id = p_channel)
              and (p_contact is null or a.contact_id = p_contact)
              and (p_before is null or a.created_at <= p_before)
              and (p_before is null or a.created_at < p_before or a.id < p_id)
            order by a.created_at desc, a.id desc
            limit 60);
    end if;
    return query select unnest(v_found[1:60]);
end
$$;
comment on function gleaner.match_words(text, text, text, bigint, boolean, uuid, bigint, timestamptz, uuid) is 'The newest activities with all these words.';
revoke all on function gleaner.match_words(text, text, text, bigint, boolean, uuid, bigint, timestamptz, uuid) from public, anon, authenticated, service_role;
grant execute on function gleaner.match_words(text, text, text, bigint, boolean, uuid, bigint, timestamptz, uuid) to authenticated, service_role;
