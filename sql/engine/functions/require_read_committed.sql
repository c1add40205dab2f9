/*
 * Claims lock the newest version of a row, which only read committed allows: under repeatable read a claim would
 * fail with 40001 whenever any candidate had been edited since the transaction began.
 */
create or replace function gleaner.require_read_committed() returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'a claim needs read committed, this transaction is %', current_setting('transaction_isolation')
            using errcode = 'GL001',
                  hint = 'Claim in a transaction of its own, or begin it with: begin isolation level read committed';
    end if;
end
$$;
revoke all on function gleaner.require_read_committed() from public, anon, authenticated;
grant execute on function gleaner.require_read_committed() to gleaner_engine, service_role;
