/*
 * Lets plain writers (REST, psql) and the sealing server share a channel's row without losing anything of each other's.
 *
 * The server reads a row, seals what it finds in clear, and writes the next version; any other write is a plain one.
 * A plain write
 *   - of a new ingestion key is looked up by its hash from this commit on, and marked to be sealed;
 *   - of a masked key, also an outdated mask from a form that was open for long, keeps the key there is;
 *   - of config is marked to be sealed; masks in it are resolved by the server that opens the row;
 *   - of the sealed columns themselves is undone: a whole row read yesterday and sent back today must not bring
 *     yesterday's key back.
 *
 * A new row whose key is a mask has no key: every request is rejected until `gleaner channels rotate` makes one.
 */
create or replace function public.keep_channel_secrets() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'INSERT' then
        if new.sealed_key is null then
            new.key_hash := case when new.ingestion_key not like 'ik\_…%' then sha256(convert_to(new.ingestion_key, 'UTF8')) end;
            new.previous_key_hash := null;
            new.previous_key_expires := null;
            new.sealed_config := null;
            new.secrets_expire := '{}';
            new.sealed := false;
        end if;
        return new;
    end if;

    new.changed_at := now();
    if new.version = old.version + 1 then
        return new;
    end if;
    new.version := old.version + 1;
    new.previous_key_hash := old.previous_key_hash;
    new.previous_key_expires := old.previous_key_expires;
    new.sealed_config := old.sealed_config;
    new.secrets_expire := old.secrets_expire;
    new.sealed := old.sealed and new.config = old.config and new.provider_code = old.provider_code;
    if new.ingestion_key = old.ingestion_key or new.ingestion_key like 'ik\_…%' then
        new.ingestion_key := old.ingestion_key;
        new.key_hash := old.key_hash;
        new.sealed_key := old.sealed_key;
    else
        new.key_hash := sha256(convert_to(new.ingestion_key, 'UTF8'));
        new.sealed_key := null;
        new.sealed := false;
    end if;
    return new;
end
$$;
comment on function public.keep_channel_secrets() is 'Keeps key_hash for keys written in clear, and sealed secrets through plain writes.';
revoke all on function public.keep_channel_secrets() from public, anon, authenticated;

create or replace trigger keep_channel_secrets
before insert or update on public.ingestion_providers
for each row execute function public.keep_channel_secrets();

-- Channels that were there before.
update public.ingestion_providers
set key_hash = sha256(convert_to(ingestion_key, 'UTF8')), version = version + 1
where key_hash is null and ingestion_key not like 'ik\_…%';
