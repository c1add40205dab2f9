/*
 * Guards what people and workers may change of an activity. What is written back unchanged is no change.
 *
 * Origin   provider_id, external_id, sender_kind, sender_address and raw_data of an activity that came through a channel are
 *          written by the webhook endpoint alone: the message stays what the sender sent. Nobody adds an activity to a channel by
 *          hand. Workers change the origin of no activity.
 * Owner    sales_id is changed by the owner, by an administrator, or by the act assign, which records it.
 * Raises   42501.
 *
 * Only for the roles of signed-in callers: acts, the service key and direct logins run as other roles. Security definer: the owner
 * is looked up whatever the caller may see.
 */
create or replace function public.guard_activity() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_worker boolean := gleaner.worker_session() is not null;
begin
    if tg_op = 'INSERT' then
        if new.provider_id is not null then
            raise exception 'only its webhook adds activities to a channel'
                using errcode = '42501', hint = 'Leave provider_id out.';
        end if;
        return new;
    end if;

    if (v_worker or old.provider_id is not null or new.provider_id is not null)
       and (new.provider_id, new.external_id, new.sender_kind, new.sender_address, new.raw_data)
           is distinct from (old.provider_id, old.external_id, old.sender_kind, old.sender_address, old.raw_data)
    then
        raise exception 'where activity % came from and what it said cannot be changed', old.id
            using errcode = '42501',
                  hint = 'provider_id, external_id, sender_kind, sender_address and raw_data are written by the webhook endpoint. Use metadata or processed_data.';
    end if;

    if new.sales_id is distinct from old.sales_id
       and (v_worker or not (
            gleaner.is_administrator()
            or exists (
                select from public.sales as s
                where s.id = old.sales_id and s.user_id = gleaner.caller_uid() and not s.disabled)))
    then
        raise exception 'only the owner of activity % or an administrator may give it to somebody else', old.id
            using errcode = '42501', hint = 'gleaner.assign_activities changes the owner of rows that you may operate, and records it.';
    end if;
    return new;
end
$$;
comment on function public.guard_activity() is 'Keeps the origin and the owner of an activity from those they are not for.';
revoke all on function public.guard_activity() from public, anon, authenticated;

create or replace trigger guard_activity
before insert or update of provider_id, external_id, sender_kind, sender_address, raw_data, sales_id on public.activities
for each row when (current_user::text in ('anon', 'authenticated'))
execute function public.guard_activity();
