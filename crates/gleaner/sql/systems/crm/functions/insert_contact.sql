/*
 * One new contact with one address, on this product's own table or on a CRM's that was there first: the columns both have,
 * and of the others those that are there in a fitting type.
 */
create or replace function gleaner.insert_contact(
    p_first text, p_last text, p_kind text, p_address text, p_sales_id bigint, p_seen timestamptz) returns bigint
language plpgsql volatile
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_columns text := '';
    v_values  text := '';
    v_more    record;
    v_id      bigint;
begin
    for v_more in
        select a.attname as name,
               case a.attname when 'tags' then '''{auto-created,unqualified}''' else '$7' end as value
        from pg_attribute as a
        where a.attrelid = 'public.contacts'::regclass and not a.attisdropped
          and (a.attname = 'tags' and a.atttypid = 'text[]'::regtype
               or a.attname in ('first_seen', 'last_seen') and a.atttypid in ('timestamptz'::regtype, 'timestamp'::regtype))
    loop
        v_columns := v_columns || format(', %I', v_more.name);
        v_values := v_values || ', ' || v_more.value;
    end loop;
    execute format(
        'insert into public.contacts (first_name, last_name, email, phone_number, email_jsonb, phone_jsonb, sales_id%s)
         values ($1, $2, case $3 when ''email'' then $4 end, case $3 when ''phone'' then $4 end,
                 case $3 when ''email'' then $5 else ''[]'' end, case $3 when ''phone'' then $5 else ''[]'' end, $6%s) returning id',
        v_columns, v_values)
    into v_id
    using p_first, p_last, p_kind, p_address,
          gleaner.with_address('[]', case p_kind when 'email' then 'email' else 'number' end, p_address), p_sales_id, p_seen;
    return v_id;
end
$$;
comment on function gleaner.insert_contact(text, text, text, text, bigint, timestamptz) is 'One new contact with one address, in either shape of the table.';
revoke all on function gleaner.insert_contact(text, text, text, text, bigint, timestamptz) from public, anon, authenticated, service_role;
