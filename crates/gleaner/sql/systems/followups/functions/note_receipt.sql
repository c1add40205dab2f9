/*
 * What a provider says has become of a message we sent: kept with the action and with the outbound activity. Reports may come
 * in any order and more than once; a final state is not left. A message that cannot be delivered for good, or a complaint, puts
 * the recipient on the list of people who are not written to.
 *
 * Takes    the provider's id of the message, and {status, detail, at, final, unwanted}.
 */
create or replace function gleaner.note_receipt(p_message_id text, p_receipt jsonb) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, public, pg_temp
as $$
declare
    v_row   public.scheduled_actions;
    v_final boolean;
begin
    select a.* into v_row from public.scheduled_actions as a where a.result ->> 'receipt_id' = p_message_id for no key update;
    if not found then
        return;
    end if;
    v_final := v_row.result #>> '{receipt,final}' is not distinct from 'true';
    if v_row.result -> 'receipt' is distinct from p_receipt and not v_final then
        update public.scheduled_actions as a set result = a.result || jsonb_build_object('receipt', p_receipt) where a.id = v_row.id;
        if to_regclass('public.activities') is not null then
            update public.activities as a set metadata = a.metadata || jsonb_build_object('delivery', p_receipt)
            where a.contact_id is not distinct from v_row.contact_id and a.direction = 'outbound'
              and a.metadata ->> 'followup_id' = v_row.id::text and a.created_at >= v_row.sending_at;
        end if;
    end if;
    if p_receipt ->> 'unwanted' = 'true' then
        insert into public.do_not_contact as d (address, contact_id, reason)
        values (v_row.message ->> 'to', v_row.contact_id, coalesce(p_receipt ->> 'detail', p_receipt ->> 'status'))
        on conflict (address) do nothing;
    end if;
end
$$;
comment on function gleaner.note_receipt(text, jsonb) is 'Keeps what a provider reports about a message we sent.';
revoke all on function gleaner.note_receipt(text, jsonb) from public, anon, authenticated, service_role;
