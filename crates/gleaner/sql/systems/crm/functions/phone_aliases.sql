/*
 * The other spellings of a mobile number, where a country has changed its mind:
 *
 *   Mexico     +52 1 and ten digits      +52 and ten digits
 *   Brazil     area, 9, eight digits     area, eight digits (beginning with 6 to 9: a line on land never had a 9)
 *   Argentina  +54 9 and ten digits      +54 and ten digits
 */
create or replace function gleaner.phone_aliases(p_address text) returns text[]
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return case
        when p_address ~ '^\+521[0-9]{10}$' then array['+52' || substr(p_address, 5)]
        when p_address ~ '^\+52[0-9]{10}$' then array['+521' || substr(p_address, 4)]
        when p_address ~ '^\+55[1-9][0-9]9[6-9][0-9]{7}$' then array[left(p_address, 5) || substr(p_address, 7)]
        when p_address ~ '^\+55[1-9][0-9][6-9][0-9]{7}$' then array[left(p_address, 5) || '9' || substr(p_address, 6)]
        when p_address ~ '^\+549[0-9]{10}$' then array['+54' || substr(p_address, 5)]
        when p_address ~ '^\+54[0-9]{10}$' then array['+549' || substr(p_address, 4)]
        else '{}'
    end;
end
$$;
comment on function gleaner.phone_aliases(text) is 'Other spellings of a mobile number in Mexico, Brazil and Argentina.';
revoke all on function gleaner.phone_aliases(text) from public, anon, authenticated, service_role;
