-- The dumps of a basket, newest first, as they are shown.
drop index public.raw_dumps_basket_id_idx;
create index raw_dumps_basket_id_idx on public.raw_dumps (basket_id, created_at desc, id desc);
