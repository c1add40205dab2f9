/*
 * Keeps gleaner.activity_words in step: after an insert, and after an update that names the columns it is made of. A claim names none.
 * Rights   the definer's: the words are read through public.search_activities alone.
 */
create or replace function gleaner.store_words() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_words tsvector := gleaner.words_of(concat_ws(' ', new.raw_data ->> 'sender', new.sender_address, new.raw_data ->> 'subject', new.processed_data ->> 'summary', new.raw_data ->> 'content'));
begin
    insert into gleaner.activity_words as w (activity_id, created_at, words)
    values (new.id, new.created_at, v_words)
    on conflict (activity_id) do update set created_at = excluded.created_at, words = excluded.words
    where (w.created_at, w.words) is distinct from (excluded.created_at, excluded.words);
    return null;
end
$$;
comment on function gleaner.store_words() is 'Keeps the words of activities in step with them.';
revoke all on function gleaner.store_words() from public, anon, authenticated, service_role;

create or replace trigger store_words
after insert or update of raw_data, processed_data, sender_address, created_at on public.activities
for each row execute function gleaner.store_words();
