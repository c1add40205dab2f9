// Signing in with the real client, as agents, front ends and scripts do.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { anonKey, anonymous, releases, service, url, type Client } from './support.ts';

const password = 'correct horse battery';

for (const { name, createClient } of releases) {
    describe(`${name}: auth`, () => {
        const admin: Client = service(createClient);
        const email = `${randomUUID()}@example.com`;
        const made: string[] = [];
        let user: string;

        const signedIn = async (): Promise<Client> => {
            const client = anonymous(createClient);
            const { error } = await client.auth.signInWithPassword({ email, password });
            assert.equal(error, null);
            return client;
        };

        before(async () => {
            const created = await admin.auth.admin.createUser({
                email: email.toUpperCase(), password, email_confirm: true, user_metadata: { first_name: 'Wire' },
            });
            assert.equal(created.error, null);
            user = created.data.user!.id;
            made.push(user);
        });

        after(async () => {
            for (const id of made) {
                await admin.from('sales').delete().eq('user_id', id);
                await admin.auth.admin.deleteUser(id);
            }
        });

        test('a password opens a session, and the token is who one is to the database', async () => {
            const client = anonymous(createClient);
            const { data, error } = await client.auth.signInWithPassword({ email, password });
            assert.equal(error, null);
            assert.deepEqual([data.user!.id, data.user!.email, data.session!.token_type, data.session!.expires_in], [user, email, 'bearer', 3600]);
            assert.ok(data.session!.expires_at! > Date.now() / 1000 + 3000);
            const got = await client.auth.getUser();
            assert.deepEqual([got.error, got.data.user!.id], [null, user]);
            const me = await client.from('sales').select('id, first_name, administrator').eq('user_id', user).single();
            assert.deepEqual([me.error, me.data!.first_name, me.data!.administrator], [null, 'Wire', false]);
            if ('getClaims' in client.auth) {
                const claims = await client.auth.getClaims();
                assert.equal(claims.error, null);
                assert.deepEqual([claims.data!.claims.sub, claims.data!.claims.role, claims.data!.claims.aal], [user, 'authenticated', 'aal1']);
            }
        });

        test('an agent takes its work from sign-in to completion', async () => {
            const agent = await signedIn();
            const me = await agent.from('sales').select('id').eq('user_id', user).single();
            const added = await agent.from('activities').insert({ type: 'note', sales_id: me.data!.id, raw_data: { content: 'x' } }).select('id').single();
            assert.equal(added.error, null);
            const claimed = await agent.rpc('claim_next_pending_activity', { p_agent_sales_id: me.data!.id });
            assert.deepEqual([claimed.error, claimed.data[0].id], [null, added.data!.id]);
            // A renewed token is the same sign-in: the work is still ours.
            assert.equal((await agent.auth.refreshSession()).error, null);
            const done = { processing_status: 'completed', processed_data: { ok: true }, locked_by: null, locked_at: null };
            assert.equal((await agent.from('activities').update(done).eq('id', added.data!.id)).error, null);
            const ended = await agent.from('activities').select('processing_status').eq('id', added.data!.id).single();
            assert.equal(ended.data!.processing_status, 'completed');
            await admin.from('activities').delete().eq('id', added.data!.id);
        });

        test('a wrong password and an unknown address are one error, with its code', async () => {
            for (const address of [email, 'nobody@example.com']) {
                const { data, error } = await anonymous(createClient).auth.signInWithPassword({ email: address, password: 'wrong' });
                assert.equal(data.session, null);
                assert.deepEqual([error!.status, error!.code, error!.message], [400, 'invalid_credentials', 'Invalid login credentials']);
            }
        });

        test('a session is renewed, and an old token is answered with the active one', async () => {
            const client = await signedIn();
            const first = (await client.auth.getSession()).data.session!;
            const second = await client.auth.refreshSession();
            assert.equal(second.error, null);
            assert.notEqual(second.data.session!.access_token, first.access_token);
            assert.notEqual(second.data.session!.refresh_token, first.refresh_token);
            const late = await anonymous(createClient).auth.refreshSession({ refresh_token: first.refresh_token });
            assert.equal(late.data.session!.refresh_token, second.data.session!.refresh_token);
            const bad = await anonymous(createClient).auth.refreshSession({ refresh_token: 'nonsense' });
            assert.deepEqual([bad.error!.status, bad.error!.code], [400, 'refresh_token_not_found']);
        });

        test('a session is handed to another client', async () => {
            const { access_token, refresh_token } = (await (await signedIn()).auth.getSession()).data.session!;
            const other = anonymous(createClient);
            const { data, error } = await other.auth.setSession({ access_token, refresh_token });
            assert.deepEqual([error, data.user!.id], [null, user]);
        });

        test('signing out ends what it says', async () => {
            const [here, there] = [await signedIn(), await signedIn()];
            assert.equal((await here.auth.signOut({ scope: 'others' })).error, null);
            assert.equal((await here.auth.getUser()).error, null);
            const gone = await there.auth.getUser();
            // The client signs out by itself when the session is gone.
            assert.ok(gone.error && (gone.error.code === 'session_not_found' || gone.error.name === 'AuthSessionMissingError'), String(gone.error));
            assert.equal((await here.auth.signOut()).error, null);
            assert.equal((await here.auth.getSession()).data.session, null);
        });

        test('one changes what is one\'s own', async () => {
            const client = await signedIn();
            const changed = await client.auth.updateUser({ data: { theme: 'dark' } });
            assert.deepEqual([changed.error, changed.data.user!.user_metadata.theme], [null, 'dark']);
            const weak = await client.auth.updateUser({ password: 'short' });
            assert.deepEqual([weak.error!.status, weak.error!.code, weak.error!.name], [422, 'weak_password', 'AuthWeakPasswordError']);
            assert.deepEqual((weak.error as unknown as { reasons: string[] }).reasons, ['length']);
        });

        test('signing up is off', async () => {
            const { error } = await anonymous(createClient).auth.signUp({ email: `${randomUUID()}@example.com`, password });
            assert.deepEqual([error!.status, error!.code], [422, 'signup_disabled']);
        });

        test('the service key manages users, and nobody else does', async () => {
            const address = `${randomUUID()}@example.com`;
            const created = await admin.auth.admin.createUser({ email: address, password });
            assert.equal(created.error, null);
            const id = created.data.user!.id;
            made.push(id);
            const again = await admin.auth.admin.createUser({ email: address, password });
            assert.deepEqual([again.error!.status, again.error!.code], [422, 'email_exists']);
            const unconfirmed = await anonymous(createClient).auth.signInWithPassword({ email: address, password });
            assert.equal(unconfirmed.error!.code, 'email_not_confirmed');
            const updated = await admin.auth.admin.updateUserById(id, { email_confirm: true, app_metadata: { plan: 'pro' } });
            assert.deepEqual([updated.error, updated.data.user!.app_metadata.plan], [null, 'pro']);
            assert.equal((await admin.auth.admin.getUserById(id)).data.user!.email, address);
            const page = await admin.auth.admin.listUsers({ page: 1, perPage: 1 });
            assert.equal(page.error, null);
            assert.equal(page.data.users.length, 1);
            assert.ok((page.data as { total: number }).total >= 2);
            const inside = anonymous(createClient);
            assert.equal((await inside.auth.signInWithPassword({ email: address, password })).error, null);
            assert.equal((await inside.from('sales').select('id')).error, null);
            const banned = await admin.auth.admin.updateUserById(id, { ban_duration: '1h' });
            assert.equal(banned.error, null);
            const late = await inside.from('sales').select('id');
            assert.deepEqual([late.status, late.error!.code, late.error!.message], [403, '42501', 'User is banned'], 'the token does not outlive the ban');
            const outside = await anonymous(createClient).auth.signInWithPassword({ email: address, password });
            assert.equal(outside.error!.code, 'user_banned');
            const link = await admin.auth.admin.generateLink({ type: 'recovery', email });
            assert.equal(link.error, null);
            const followed = await anonymous(createClient).auth.verifyOtp({ type: 'recovery', token_hash: link.data.properties!.hashed_token });
            assert.deepEqual([followed.error, followed.data.user!.id], [null, user]);
            const refused = await (await signedIn()).auth.admin.listUsers();
            assert.deepEqual([refused.error!.status, refused.error!.code], [403, 'not_admin']);
            assert.equal((await admin.auth.admin.deleteUser(id)).error, null);
            assert.equal((await admin.auth.admin.getUserById(id)).error!.code, 'user_not_found');
        });

        test('a browser may ask from anywhere, and learns why it was refused', async () => {
            const preflight = await fetch(`${url}/auth/v1/token?grant_type=password`, {
                method: 'OPTIONS',
                headers: { origin: 'http://app.example', 'access-control-request-method': 'POST', 'access-control-request-headers': 'apikey,x-supabase-api-version' },
            });
            assert.ok(preflight.ok);
            const refused = await fetch(`${url}/auth/v1/user`, { headers: { apikey: anonKey, origin: 'http://app.example', 'x-supabase-api-version': '2024-01-01' } });
            assert.equal(refused.headers.get('access-control-allow-origin'), '*');
            assert.equal(refused.headers.get('x-supabase-api-version'), '2024-01-01');
            assert.deepEqual([refused.status, (await refused.json()).code], [401, 'no_authorization']);
        });
    });
}
