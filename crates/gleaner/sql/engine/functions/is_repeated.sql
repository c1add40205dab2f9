/*
 * Whether a claim with this request id was answered with rows before. One that was given nothing yet looks again: a claim that waits
 * does. The lock lets the second of two at once see what the first was given.
 */
create or replace function gleaner.is_repeated(p_queue text, p_request uuid) returns boolean
language plpgsql
as $$
begin
    insert into gleaner.request (queue, id, at) values (p_queue, p_request, clock_timestamp()) on conflict do nothing;
    if found then
        return false;
    end if;
    perform from gleaner.request as r where r.queue = p_queue and r.id = p_request and r.keys = '{}' for update;
    return not found;
end
$$;
comment on function gleaner.is_repeated(text, uuid) is 'Whether a claim with this request id was answered with rows before.';
revoke all on function gleaner.is_repeated(text, uuid) from public, anon, authenticated, service_role;
grant execute on function gleaner.is_repeated(text, uuid) to gleaner_engine;
