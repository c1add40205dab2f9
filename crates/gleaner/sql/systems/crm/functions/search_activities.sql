/*
 * Activities that contain all these words, each found by its beginning, in sender, subject, content and summary.
 * Pages    p_before and p_id are the time and the id of the last row of the page before. Order by created_at and id, both
 *          descending, and take up to 50.
 * Returns  of the newest 60 that match those that the caller may see.
 */
create or replace function public.search_activities(
    p_text text, p_status text default null, p_type text default null, p_owner bigint default null, p_unowned boolean default false,
    p_channel uuid default null, p_contact bigint default null, p_before timestamptz default null, p_id uuid default null
) returns setof public.activities
language sql stable rows 60
set search_path = pg_catalog, pg_temp
as $$
    select a.*
    from gleaner.match_words(p_text, p_status, p_type, p_owner, p_unowned, p_channel, p_contact, p_before, p_id) as found (id)
    join public.activities as a on a.id = found.id
$$;
comment on function public.search_activities(text, text, text, bigint, boolean, uuid, bigint, timestamptz, uuid) is 'Activities that contain all these words.';
revoke all on function public.search_activities(text, text, text, bigint, boolean, uuid, bigint, timestamptz, uuid) from public, anon, authenticated;
grant execute on function public.search_activities(text, text, text, bigint, boolean, uuid, bigint, timestamptz, uuid) to authenticated, service_role;
