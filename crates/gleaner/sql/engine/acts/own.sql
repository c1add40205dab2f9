{%- if owner %}
/*
 * The owner id the caller may speak for. What a caller says of itself is a claim, not a fact: the service key and direct
 * logins are believed, a signed-in user only where the owner's row names that user. Null stays null for the trusted, and for a
 * worker's key, which is nobody's own. A user who is no owner, or no longer, gets no work and no answers:
 * signing up is not joining, and a token outlives its owner's leaving.
 */
create or replace function gleaner.own_{{ name }}(p_owner {{ owner.type }}) returns {{ owner.type }}
language plpgsql stable
as {{ body }}
{%- if owner.user %}
declare
    v_owner {{ owner.type }};
{%- endif %}
begin
    if gleaner.is_trusted() then
        return p_owner;
    end if;
{%- if owner.user %}
    select o.{{ owner.key }} into v_owner from {{ owner.table }} as o where o.{{ owner.user }} = gleaner.caller_uid()
{%- if owner.disabled %} and o.{{ owner.disabled }} is not true{% endif %};
    if p_owner is not null and p_owner is distinct from v_owner then
        raise exception '% is not the caller''s own id in {{ owner.table_text }}', p_owner
            using errcode = '42501', hint = 'Leave the owner out to act as yourself, or use the service key.';
    end if;
    if v_owner is null and gleaner.worker_session() is null then
        raise exception 'the caller is no owner in {{ owner.table_text }}{{ ", or a disabled one" if owner.disabled }}'
            using errcode = '42501', hint = 'Work is for owners, for keys made by `gleaner keys add`, and for the service key.';
    end if;
    return v_owner;
{%- else %}
    if p_owner is not null then
        raise exception 'a signed-in user cannot be matched to an owner of {{ name }}'
            using errcode = '42501', hint = 'Declare owner.user, the column of the owner table that holds the user''s id.';
    end if;
    return null;
{%- endif %}
end
{{ body }};
{%- endif %}
