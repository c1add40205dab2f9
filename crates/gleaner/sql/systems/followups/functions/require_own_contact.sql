/*
 * The contact that a prospect names, for a caller who plans something for it.
 * Raises   42501 for callers outside the team and for another member's contact; GL002 where a member names no contact. Administrators
 *          and the service key plan for anyone.
 */
create or replace function gleaner.require_own_contact(p_prospect text) returns bigint
language plpgsql stable security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_contact bigint := gleaner.contact_of_prospect(p_prospect);
begin
    if gleaner.operates('followups', '{service_role}', '{authenticated}') = 'own' then
        if v_contact is null then
            raise exception 'no contact is known as %', p_prospect
                using errcode = 'GL002', hint = 'Add the contact, or give it this identity; contact:ID names one by its id.';
        end if;
        if not gleaner.owns_contact(v_contact) then
            raise exception 'contact % belongs to another member', v_contact
                using errcode = '42501', hint = 'Its owner or an administrator may plan a message.';
        end if;
    end if;
    return v_contact;
end
$$;
comment on function gleaner.require_own_contact(text) is 'The contact that a prospect names, if the caller may plan something for it.';
revoke all on function gleaner.require_own_contact(text) from public, anon, authenticated, service_role;
