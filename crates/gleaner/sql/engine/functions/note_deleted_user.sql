/*
 * Notes that a user was deleted, so that its tokens end at once, and tells servers to close its sockets. A user that is added again
 * under the same id may come in again.
 */
create or replace function gleaner.note_deleted_user() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'INSERT' then
        delete from gleaner.deleted_user as d where d.id = new.id;
        return null;
    end if;
    insert into gleaner.deleted_user (id) values (old.id) on conflict (id) do nothing;
    perform pg_notify('gleaner', 'auth.users');
    return null;
end
$$;
comment on function gleaner.note_deleted_user() is 'Notes that a user was deleted, so that its tokens end.';
revoke all on function gleaner.note_deleted_user() from public, anon, authenticated, service_role;

-- A platform's own table is not ours to put triggers on; there the platform ends the tokens.
do $trigger$
begin
    create or replace trigger note_deleted_user
    after insert or delete on auth.users
    for each row execute function gleaner.note_deleted_user();
exception when insufficient_privilege then
    null;
end
$trigger$;
