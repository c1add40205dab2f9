/*
 * An act that moves a row to another time is told which.
 * Raises   GL002.
 */
create or replace function gleaner.check_time(p_act text, p_at timestamptz) returns void
language plpgsql immutable
as $$
begin
    if p_at is null then
        raise exception '% needs a time', p_act using errcode = 'GL002', hint = 'Pass a time, for example now() + interval ''10 minutes''.';
    end if;
end
$$;
comment on function gleaner.check_time(text, timestamptz) is 'Raises where an act that needs a time was given none.';
revoke all on function gleaner.check_time(text, timestamptz) from public, anon, authenticated, service_role;
grant execute on function gleaner.check_time(text, timestamptz) to gleaner_engine;
