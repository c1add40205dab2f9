-- Functions of every kind.
create function add(a int, b int default 10) returns int immutable language sql as 'select a + b';
create function nobody() returns text stable language sql as 'select null::text';
create function said(what text) returns text immutable language sql as 'select what';
create function echo(v jsonb) returns jsonb immutable language sql as 'select v';
create function nothing() returns void language sql as 'select 1';
create function two() returns setof int immutable language sql as 'values (1), (2)';
create function no_things() returns setof things stable language sql as 'select * from things where false';
create function all_things() returns setof things stable language sql as 'select * from things order by id';
create function one_thing(p_id bigint) returns things stable language sql as 'select * from things where id = p_id';
create function pairs(n int) returns table (k int, v text) immutable language sql as 'select i, i::text from generate_series(1, n) i';
create function single_column() returns table (k int) immutable language sql as 'values (1)';
create function parts(out x int, out y text) immutable language sql as $$ select 1, null::text $$;
create function total(variadic numbers int[]) returns bigint immutable language sql as 'select sum(n) from unnest(numbers) n';
create function make(p_name text) returns setof things language sql as 'insert into things (name) values (p_name) returning *';
create function twice(a int) returns int immutable language sql as 'select a';
create function twice(a text) returns int immutable language sql as 'select 1';
create function unlike(a int) returns text immutable language sql as $$ select 'a' $$;
create function unlike(b text) returns text immutable language sql as $$ select 'b' $$;
create function fails(code text) returns void language plpgsql as
    $$ begin raise exception 'no way' using errcode = code, detail = 'because', hint = 'do not'; end $$;
create function "Odd name"("Odd arg" text) returns text immutable language sql as 'select $1';
