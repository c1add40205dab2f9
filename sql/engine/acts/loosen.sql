{%- from "macros.sql" import definer, untouched -%}
{%- if sheaf %}
/*
 * Puts the lease of a sheaf on the rows themselves, as if each had been claimed alone: those of p_ids, or all of them, in the
 * sheaf p_sheaf or in every one. What an act does with a single row begins with it, and so does the end of a lease.
 * Order    the sheaf's lock comes before its rows', in every act.
 */
create or replace function gleaner.loosen_{{ name }}(p_ids {{ key.type }}[], p_sheaf bigint default null) returns void
language plpgsql
{{ definer() }}
as $loosen$
declare
    v_wanted int8multirange := (select range_agg(int8range(i, i, '[]')) from unnest(p_ids) as i);
    v_sheaf  gleaner.sheaf;
begin
    if cardinality(p_ids) = 0 then
        return;
    end if;
    for v_sheaf in
        select s.*
        from gleaner.sheaf as s
        where s.queue = '{{ name }}' and (p_sheaf is null or s.id = p_sheaf) and (v_wanted is null or s.keys && v_wanted)
        order by s.id
        for update
    loop
        -- Those that were cancelled, buried or finished by hand meanwhile have a lease of their own.
        update {{ table }} as q
        set {{ status.column }} = {{ status.taken }},
            {{ col.due }} = v_sheaf.due_at,
            {{ col.lease }} = -v_sheaf.id,
            {{ col.deadline }} = v_sheaf.deadline_at,
            {{ col.started }} = case when v_sheaf.begun @> k.id then 1 else 0 end,
            {{ col.agent }} = v_sheaf.agent,
            {{ col.session }} = v_sheaf.session
        from (select i as id
              from unnest(coalesce(v_sheaf.keys * v_wanted, v_sheaf.keys)) as r, generate_series(lower(r), upper(r) - 1) as i
              order by i) as k
        where q.{{ key.column }} = k.id and {{ untouched("q") }} and q.{{ status.column }} = {{ status.ready }};
        if v_sheaf.keys <@ coalesce(v_wanted, v_sheaf.keys) then
            delete from gleaner.sheaf as s where s.id = v_sheaf.id;
        else
            update gleaner.sheaf as s set keys = s.keys - v_wanted where s.id = v_sheaf.id;
        end if;
    end loop;
end
$loosen$;
{%- endif %}
