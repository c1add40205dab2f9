/*
 * Remembers a link that is given out. Earlier ones stay good until they expire: another person's request for a reset must not
 * void the link in my mailbox. Expired ones are removed on the way.
 */
create or replace function gleaner.issue_token(p_user uuid, p_type text, p_hash text, p_valid interval) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from auth.one_time_tokens as t where t.user_id = p_user and t.expires_at <= clock_timestamp();
    insert into auth.one_time_tokens (user_id, token_type, token_hash, relates_to, expires_at)
    select u.id, p_type, p_hash, u.email, clock_timestamp() + p_valid from auth.users as u where u.id = p_user;
    if p_type = 'invite' then
        update auth.users as u set invited_at = clock_timestamp() where u.id = p_user;
    end if;
end
$$;
comment on function gleaner.issue_token(uuid, text, text, interval) is 'Remembers a one-time link by the hash of its token.';
revoke all on function gleaner.issue_token(uuid, text, text, interval) from public, anon, authenticated;
