/*
 * gleaner.is_plain, asked once a second and session: the answer costs more than a claim. In the second after a trigger or a check was
 * added to the table, a claim may raise what that raises; the next claims look at each row.
 * Returns  until when the answer is used, as an epoch; below zero where something on the table can reject a claim.
 */
create or replace function gleaner.check_plain(p_setting text, p_now timestamptz, p_table regclass, p_columns text[], p_status text) returns double precision
language plpgsql
as $$
declare
    v_until double precision := extract(epoch from p_now + interval '1 second') * case when gleaner.is_plain(p_table, p_columns, p_status) then 1 else -1 end;
begin
    perform set_config(p_setting, v_until::text, false);
    return v_until;
end
$$;
comment on function gleaner.check_plain(text, timestamptz, regclass, text[], text) is 'Whether nothing on the table can reject a claim, remembered for a second.';
revoke all on function gleaner.check_plain(text, timestamptz, regclass, text[], text) from public, anon, authenticated, service_role;
grant execute on function gleaner.check_plain(text, timestamptz, regclass, text[], text) to gleaner_engine;
