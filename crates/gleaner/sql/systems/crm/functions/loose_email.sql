/*
 * The mailbox behind an address, for the second look: john+news@example.com is john@example.com, and at Google, where dots
 * mean nothing and two domains are one, j.o.hn@googlemail.com is john@gmail.com. Expects what normalize_email gives.
 */
create or replace function gleaner.loose_email(p_address text) returns text
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    v_mailbox text := substring(p_address from '^(.*)@');
    v_domain  text := substring(p_address from '@([^@]*)$');
begin
    -- A tag needs a name before it: '+tag@example.com' stays as it is.
    v_mailbox := regexp_replace(v_mailbox, '^([^+]+)\+.*$', '\1');
    if v_domain in ('gmail.com', 'googlemail.com') then
        v_mailbox := replace(v_mailbox, '.', '');
        v_domain := 'gmail.com';
    end if;
    return v_mailbox || '@' || v_domain;
end
$$;
comment on function gleaner.loose_email(text) is 'The mailbox behind an address: without tag, and without dots at Google.';
revoke all on function gleaner.loose_email(text) from public, anon, authenticated, service_role;
