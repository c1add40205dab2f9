/*
 * Who the caller is and what it may do, for pages that offer only what the server would accept. It grants nothing: every act asks
 * again.
 * Returns  {role, user_id, person, administrator, member, queues: {name: all | own | none}, server_time}
 * Security definer: it asks the same functions as the acts, which the caller may not call. It reads the caller's own row alone.
 */
create or replace function gleaner.me() returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_claims  jsonb := nullif(current_setting('request.jwt.claims', true), '')::jsonb;
    v_trusted boolean := gleaner.is_trusted();
    v_worker  boolean := gleaner.worker_session() is not null;
    v_administrator boolean := v_trusted or gleaner.is_administrator();
    v_member  boolean := v_administrator or not v_worker and gleaner.is_member();
    v_person  jsonb;
    v_queues  jsonb;
begin
    if not v_trusted and not v_worker and to_regclass('public.sales') is not null then
        execute 'select to_jsonb(p) from (
                     select s.id, s.first_name, s.last_name, s.email, s.stale_threshold_minutes, s.allow_remote_processing
                     from public.sales as s where s.user_id = $1 and not s.disabled) as p'
        into v_person using (v_claims ->> 'sub')::uuid;
    end if;
    select coalesce(jsonb_object_agg(q.name, case
               when v_administrator or q.declaration #> '{grant,operate}' ? gleaner.caller_role() then 'all'
               when v_member and q.declaration #> '{grant,own}' ? gleaner.caller_role() then 'own'
               else 'none' end), '{}')
    into v_queues
    from gleaner.queue as q;
    return jsonb_build_object(
        'role', case when v_trusted then 'service' when v_worker then 'worker' when v_administrator then 'administrator'
                     when v_member then 'member' else 'stranger' end,
        'user_id', case when not v_worker then v_claims ->> 'sub' end,
        'email', v_claims ->> 'email',
        'person', v_person,
        'administrator', v_administrator,
        'member', v_member,
        'queues', v_queues,
        'server_time', clock_timestamp());
end
$$;
comment on function gleaner.me() is 'Who the caller is, and what it may do.';
revoke all on function gleaner.me() from public, anon, authenticated;
grant execute on function gleaner.me() to authenticated, service_role;
