-- The words of a text, each as it stands: of an address its parts, of a number its digits. What follows the first 20,000 signs is not searched.
create or replace function gleaner.words_of(p_text text) returns tsvector
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select to_tsvector('pg_catalog.simple', regexp_replace(left(p_text, 20000), '[^[:alnum:]]+', ' ', 'g'))
$$;
comment on function gleaner.words_of(text) is 'The words of a text, for the search of activities.';
revoke all on function gleaner.words_of(text) from public, anon, authenticated, service_role;
