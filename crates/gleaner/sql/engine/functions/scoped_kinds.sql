/*
 * The kinds a claim in p_queue may take, given those it asks for (null: all). Only a worker's key has a scope.
 * Raises   42501 when the key is not for this queue, or not for a kind it names.
 */
create or replace function gleaner.scoped_kinds(p_queue text, p_kinds text[]) returns text[]
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    v_claims jsonb := nullif(current_setting('request.jwt.claims', true), '')::jsonb;
    v_wrong  text;
begin
    if v_claims ->> 'worker' is distinct from 'true' then
        return p_kinds;
    end if;
    if v_claims ? 'queues' and not (v_claims -> 'queues') ? p_queue then
        raise exception 'this key may not work the queue %', p_queue
            using errcode = '42501', hint = 'A key is made for its queues: gleaner keys add NAME --queue ' || p_queue;
    end if;
    if not v_claims ? 'kinds' then
        return p_kinds;
    end if;
    if p_kinds is null then
        return array(select jsonb_array_elements_text(v_claims -> 'kinds'));
    end if;
    select k into v_wrong from unnest(p_kinds) as k where not (v_claims -> 'kinds') ? k limit 1;
    if found then
        raise exception 'this key may not claim work of kind %', v_wrong
            using errcode = '42501', hint = 'Leave the kinds out to claim all that the key is for.';
    end if;
    return p_kinds;
end
$$;
comment on function gleaner.scoped_kinds(text, text[]) is 'The kinds a claim may take: those it asks for, within the scope of a worker''s key.';
revoke all on function gleaner.scoped_kinds(text, text[]) from public, anon, authenticated;
grant execute on function gleaner.scoped_kinds(text, text[]) to gleaner_engine, service_role;
