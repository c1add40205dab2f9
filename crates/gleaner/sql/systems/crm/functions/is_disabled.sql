-- Whether the team has disabled this user. Sign-in and refresh ask it.
create or replace function gleaner.is_disabled(p_user uuid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (select from public.sales as s where s.user_id = p_user and s.disabled);
end
$$;
comment on function gleaner.is_disabled(uuid) is 'True when the team has disabled this user.';
revoke all on function gleaner.is_disabled(uuid) from public, anon, authenticated;
