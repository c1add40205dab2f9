/*
 * Remembers where a look ended, for the next looks of this session: for 100 ms, or for twenty times as long as a slow look took, so that
 * looks from the start take a twentieth of the time at most. One that went on from a cursor keeps that cursor's end.
 * Part of the transaction: a claim that is rolled back leaves no cursor.
 */
create or replace function gleaner.write_cursor(
    p_setting text, p_asked text, p_before jsonb, p_now timestamptz, p_took interval, p_cursor jsonb
) returns void
language plpgsql
as $$
begin
    perform set_config(p_setting, (p_cursor || jsonb_build_object(
        'asked', p_asked,
        'until', coalesce((p_before ->> 'until')::double precision, extract(epoch from p_now + greatest(20 * p_took, interval '100 milliseconds')))))::text, false);
end
$$;
comment on function gleaner.write_cursor(text, text, jsonb, timestamptz, interval, jsonb) is 'Remembers where a look ended, for the next looks of this session.';
revoke all on function gleaner.write_cursor(text, text, jsonb, timestamptz, interval, jsonb) from public, anon, authenticated, service_role;
grant execute on function gleaner.write_cursor(text, text, jsonb, timestamptz, interval, jsonb) to gleaner_engine;
