/*
 * Gives a user its row among the owners of work, unless it has one.
 * Takes    p_link: a row with the user's address that is not linked to a user yet becomes the user's, the oldest first.
 */
create or replace function gleaner.join_team(p_user uuid, p_administrator boolean, p_link boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from public.sales as s where s.user_id = p_user) then
        update public.sales as s set administrator = true where s.user_id = p_user and p_administrator and not s.administrator;
        return;
    end if;
    if p_link then
        update public.sales as s
        set user_id = p_user, administrator = s.administrator or p_administrator
        where s.id = (
            select o.id
            from public.sales as o join auth.users as u on u.id = p_user
            where o.user_id is null and lower(o.email) = u.email
            order by o.id
            limit 1
            for no key update of o);
        if found then
            return;
        end if;
    end if;
    insert into public.sales (first_name, last_name, email, user_id, administrator)
    select coalesce(nullif(u.raw_user_meta_data ->> 'first_name', ''), split_part(u.email, '@', 1)),
           coalesce(u.raw_user_meta_data ->> 'last_name', ''), u.email, u.id, p_administrator
    from auth.users as u
    where u.id = p_user;
end
$$;
comment on function gleaner.join_team(uuid, boolean, boolean) is 'Gives a user its row in sales, an existing one by address where that is asked.';
revoke all on function gleaner.join_team(uuid, boolean, boolean) from public, anon, authenticated;
