/*
 * Providers report what became of a message we sent through the same webhook as messages arrive. The receiving server remembers
 * it under receipt:ID, and a system that has gleaner.note_receipt is told, in the same transaction.
 */
create or replace function gleaner.hear_receipts() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if to_regprocedure('gleaner.note_receipt(text, jsonb)') is not null then
        perform gleaner.note_receipt(substr(new.key, 9), new.value);
    end if;
    return null;
end
$$;
comment on function gleaner.hear_receipts() is 'Tells other systems what became of a message we sent.';
revoke all on function gleaner.hear_receipts() from public, anon, authenticated;

create or replace trigger hear_receipts
after insert or update on gleaner.ingest_memory
for each row
when (new.key like 'receipt:%')
execute function gleaner.hear_receipts();
