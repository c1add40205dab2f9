/*
 * Whether a message says nothing but that its sender wants no more of ours, or wants them again. The whole message is
 * compared, without case, accents, punctuation, quoted text and signature, as carriers do: "stop please" is an answer.
 * Words that are ordinary answers elsewhere (END, QUIT, CANCEL, YES) count in text messages alone.
 * Returns  stop, start or null.
 */
create or replace function gleaner.opt_out_word(p_text text, p_type text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    v_said text := regexp_replace(left(coalesce(p_text, ''), 1000), '(\n\s*>|\n-- ?\n|\n[^\n]*(wrote|schrieb|a écrit|escribió|пише|пишет)[^\n]*:\s*\n).*$', '', 'i');
begin
    v_said := translate(lower(v_said), 'áàâäéèêëíìîïóòôöúùûüñç', 'aaaaeeeeiiiioooouuuunc');
    v_said := regexp_replace(v_said, '[^[:alnum:]]+', '', 'g');
    return case
        when v_said in ('stop', 'unsubscribe', 'stopall', 'revoke', 'optout', 'remove', 'td', 'arret', 'arrete', 'arrett',
                        'stopp', 'abmelden', 'abbestellen', 'desabonner', 'desinscrire', 'baja', 'alto', 'parar',
                        'стоп', 'відписатися', 'скасувати', 'отписаться', 'отписка') then 'stop'
        when p_type in ('sms', 'whatsapp') and v_said in ('end', 'quit', 'cancel', 'cancelar') then 'stop'
        when v_said in ('start', 'unstop') or p_type in ('sms', 'whatsapp') and v_said = 'yes' then 'start'
    end;
end
$$;
comment on function gleaner.opt_out_word(text, text) is 'stop or start, when a message says nothing else.';
revoke all on function gleaner.opt_out_word(text, text) from public, anon, authenticated, service_role;
