/*
 * First and last name of a sender, from the name they gave themselves: 'Doe, John' and 'John Doe' are the same person. Without
 * one, or when it is just the address again, the name is the mailbox of an e-mail address, or the number.
 */
create or replace function gleaner.split_name(p_name text, p_address text, out first_name text, out last_name text)
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    v_name text := nullif(btrim(regexp_replace(left(p_name, 200), '[\s"]+', ' ', 'g')), '');
begin
    if v_name is null or position('@' in v_name) > 0 or lower(v_name) = p_address then
        first_name := split_part(p_address, '@', 1);
        last_name := '';
    elsif v_name ~ '^[^,]+,[^,]+$' then
        first_name := btrim(split_part(v_name, ',', 2));
        last_name := btrim(split_part(v_name, ',', 1));
    else
        first_name := split_part(v_name, ' ', 1);
        last_name := btrim(substr(v_name, length(first_name) + 1));
    end if;
end
$$;
comment on function gleaner.split_name(text, text) is 'First and last name of a sender, from what they call themselves or from their address.';
revoke all on function gleaner.split_name(text, text) from public, anon, authenticated, service_role;
