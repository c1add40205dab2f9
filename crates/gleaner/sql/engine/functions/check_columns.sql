-- Raises 42703 where the table lacks one of the columns.
create or replace function gleaner.check_columns(p_table regclass, p_columns text[]) returns void
language plpgsql stable
as $$
declare
    v_unknown text := (
        select string_agg(c, ', ') from unnest(p_columns) as c
        where not exists (select from pg_attribute as a where a.attrelid = p_table and a.attname = c and a.attnum > 0 and not a.attisdropped));
begin
    if v_unknown is not null then
        raise exception 'no such column in %: %', p_table, v_unknown using errcode = '42703';
    end if;
end
$$;
comment on function gleaner.check_columns(regclass, text[]) is 'Raises where the table lacks one of the columns.';
revoke all on function gleaner.check_columns(regclass, text[]) from public, anon, authenticated, service_role;
grant execute on function gleaner.check_columns(regclass, text[]) to gleaner_engine;
