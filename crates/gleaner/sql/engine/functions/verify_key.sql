/*
 * The claims of a program's key, by its sha256. They are what row-level security and the acts go by:
 *   worker   role authenticated, sub and session_id the key's own id, so that the key is a holder of its own; worker true
 *            and its scope, which policies and claims obey.
 *   service  role service_role.      anon   role anon.
 * Returns  null when the key is unknown, revoked or expired.
 */
create or replace function gleaner.verify_key(p_hash bytea) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_key record;
begin
    select k.* into v_key
    from gleaner.api_key as k
    where k.hash = p_hash and k.revoked_at is null and (k.expires_at is null or k.expires_at > v_now);
    if not found then
        return null;
    end if;
    -- To the minute, and never waiting for another session that does the same.
    if v_key.last_used_at is null or v_now - v_key.last_used_at > interval '1 minute' then
        update gleaner.api_key as k set last_used_at = v_now
        where k.id = (select l.id from gleaner.api_key as l where l.id = v_key.id for no key update skip locked);
    end if;
    if v_key.role = 'worker' then
        return jsonb_strip_nulls(jsonb_build_object(
            'role', 'authenticated', 'sub', v_key.id, 'session_id', v_key.id, 'key_id', v_key.id, 'worker', true,
            'queues', to_jsonb(v_key.queues), 'kinds', to_jsonb(v_key.kinds)));
    end if;
    return jsonb_build_object('role', case v_key.role when 'service' then 'service_role' else 'anon' end, 'key_id', v_key.id);
end
$$;
comment on function gleaner.verify_key(bytea) is 'The claims of a program''s key; null when it is not good.';
revoke all on function gleaner.verify_key(bytea) from public, anon, authenticated;
