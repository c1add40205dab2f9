/*
 * Stores one insight of a basket. The same insight of the same dump again, as after a crash, updates its confidence and is not
 * doubled.
 * Input    p_dump_id is the dump it came from: deleting that dump deletes it. Null is allowed, for workers that do not say.
 * Returns  the block's id.
 */
drop function if exists public.fn_block_create(uuid, text, text, text, numeric);
create or replace function public.fn_block_create(
    p_basket_id uuid,
    p_title text,
    p_content text,
    p_semantic_type text,
    p_confidence_score numeric default null,
    p_dump_id uuid default null
) returns uuid
language sql volatile
set search_path = pg_catalog, public, pg_temp
as $$
    insert into public.blocks as b (basket_id, dump_id, title, content, semantic_type, confidence_score)
    values (p_basket_id, p_dump_id, p_title, coalesce(p_content, ''), p_semantic_type, p_confidence_score)
    on conflict (basket_id, dump_id, semantic_type, md5(title), md5(content))
    do update set confidence_score = coalesce(excluded.confidence_score, b.confidence_score)
    returning b.id
$$;
comment on function public.fn_block_create(uuid, text, text, text, numeric, uuid) is 'Stores one insight of a basket; returns its id.';
revoke all on function public.fn_block_create(uuid, text, text, text, numeric, uuid) from public, anon, authenticated;
grant execute on function public.fn_block_create(uuid, text, text, text, numeric, uuid) to service_role;
