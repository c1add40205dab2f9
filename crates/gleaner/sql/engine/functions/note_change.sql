/*
 * Notes one changed row for a server that follows without the log. Fires after each row, before every other trigger of the
 * row (by its name), so that what another trigger does to the same row is noted after it.
 * Changes  gleaner.change, while there are subscribers; otherwise nothing, at the cost of one check.
 * Order    of one row's changes is kept: the writer holds the row's lock when the number is drawn.
 * Text     forms are those of the log: the same settings as the feed by the log.
 */
create or replace function gleaner.note_change() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set datestyle = 'ISO'
set intervalstyle = 'postgres'
set extra_float_digits = 1
set bytea_output = 'hex'
as $$
begin
    -- Read from a sequence, which is current for old snapshots too: a serializable writer must not miss a new subscriber.
    if (select s.last_value from gleaner.changes_wanted_until as s) < extract(epoch from clock_timestamp()) * 1000 then
        return null;
    end if;
    -- Of an old row only the key is ever reported, and that is among its first columns; who reads it checks.
    if tg_op = 'DELETE' then
        insert into gleaner.change (relation, kind, old_row) values (tg_relid, 'D', left(old::text, 4096));
    elsif tg_name = '00_gleaner_rekey' then
        insert into gleaner.change (relation, kind, new_row, old_row) values (tg_relid, 'U', new::text, left(old::text, 4096));
    else
        insert into gleaner.change (relation, kind, new_row) values (tg_relid, left(tg_op, 1)::"char", new::text);
    end if;
    return null;
end
$$;
comment on function gleaner.note_change() is 'Notes a changed row while a server follows without the log.';
revoke all on function gleaner.note_change() from public, anon, authenticated, service_role;
