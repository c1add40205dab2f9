/*
 * Asks for a look into the mailbox of a channel, now: a waiting one becomes due, a running one is followed by another.
 * Changes  gleaner.polls.wanted_at; makes the row of a channel that has none.
 * Races    asking twice is asking once.
 */
create or replace function gleaner.request_poll(p_provider_id uuid) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into gleaner.polls (provider_id, wanted_at)
    values (p_provider_id, clock_timestamp())
    on conflict (provider_id) do update set wanted_at = clock_timestamp();
end
$$;
comment on function gleaner.request_poll(uuid) is 'Asks for a look into the mailbox of a channel, now.';
revoke all on function gleaner.request_poll(uuid) from public, anon, authenticated;
grant execute on function gleaner.request_poll(uuid) to service_role;
