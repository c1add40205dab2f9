-- A platform may grant every new sequence to all roles. A role that can set one can keep others from inserting; identity columns
-- need no right to it, so no role gets any. On a Supabase project the sequences of schema auth are the platform's own.
revoke all on all sequences in schema gleaner from public, anon, authenticated;
do $auth$
begin
    if gleaner.serves_auth() then
        revoke all on all sequences in schema auth from public, anon, authenticated;
    end if;
end
$auth$;
