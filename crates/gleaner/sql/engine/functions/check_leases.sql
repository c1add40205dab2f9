/*
 * Arrays that belong together have one length: a lease for every row, not one for all.
 * Raises   GL002.
 */
create or replace function gleaner.check_leases(p_ids anyarray, p_leases bigint[]) returns void
language plpgsql immutable
as $$
begin
    if cardinality(p_ids) is distinct from cardinality(p_leases) then
        raise exception 'p_ids has % rows and p_leases has %', cardinality(p_ids), cardinality(p_leases) using errcode = 'GL002',
            hint = 'Pass one lease for every row, in the same order.';
    end if;
end
$$;
comment on function gleaner.check_leases(anyarray, bigint[]) is 'Raises where there is not one lease for every row.';
revoke all on function gleaner.check_leases(anyarray, bigint[]) from public, anon, authenticated, service_role;
grant execute on function gleaner.check_leases(anyarray, bigint[]) to gleaner_engine;
