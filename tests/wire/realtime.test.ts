// Changes of tables, broadcast and presence over the socket, as agents and front ends use them.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, afterEach, before, describe, test } from 'node:test';
import {
    addPerson, anonKey, anonymous, Inbox, releases, service, signedIn, signIn, subscribed, tokenOf, until, url, within,
    type Channel, type Client, type Person,
} from './support.ts';

type Row = Record<string, unknown>;
type Change = { eventType: string; schema: string; table: string; commit_timestamp: string; new: Row; old: Row; errors: unknown };
type Asked = { event: string; table: string; filter?: string };

for (const { name, createClient } of releases) {
    describe(`${name}: realtime`, () => {
        const db: Client = service(createClient);
        const mark = randomUUID();
        let owner: Person;
        let colleague: Person;
        let clients: Client[] = [];

        before(async () => {
            owner = addPerson();
            colleague = addPerson();
            const hidden = await db.from('sales').update({ allow_remote_processing: false }).eq('id', owner.sales_id);
            assert.equal(hidden.error, null);
        });
        afterEach(async () => {
            for (const client of clients) {
                await client.removeAllChannels();
                await client.realtime.disconnect();
            }
            clients = [];
        });
        after(async () => {
            await db.from('activities').delete().eq('metadata->>mark', mark);
            await db.from('execution_jobs').delete().eq('recording_id', mark);
        });

        const use = (client: Client): Client => {
            clients.push(client);
            return client;
        };
        /** Follows one table, and gives what arrives. */
        const follow = async (client: Client, ...asked: Asked[]): Promise<{ channel: Channel; inbox: Inbox<Change> }> => {
            const inbox = new Inbox<Change>();
            const channel = client.channel(randomUUID(), { config: { broadcast: { self: true } } });
            for (const each of asked) {
                channel.on('postgres_changes' as never, { schema: 'public', ...each } as never, inbox.put as never);
            }
            return { channel: await subscribed(channel), inbox };
        };
        /** Everything the server had sent on this channel before now has arrived after it. */
        const settle = async (channel: Channel): Promise<void> => {
            const echo = randomUUID();
            const back = new Promise<void>((resolve) => channel.on('broadcast', { event: echo }, () => resolve()));
            await channel.send({ type: 'broadcast', event: echo, payload: {} });
            await within(back, 'no echo');
        };
        const add = async (row: Row = {}): Promise<string> => {
            const made = await db.from('activities').insert({ type: 'note', metadata: { mark }, processing_status: 'completed', ...row }).select('id').single();
            assert.equal(made.error, null);
            return made.data!.id;
        };
        const change = async (id: string, row: Row) => assert.equal((await db.from('activities').update(row).eq('id', id)).error, null);
        const remove = async (id: string) => assert.equal((await db.from('activities').delete().eq('id', id)).error, null);

        test('each kind of change, and all of them', async () => {
            const client = use(service(createClient));
            const { inbox: inserts } = await follow(client, { event: 'INSERT', table: 'activities' });
            const { inbox: updates } = await follow(client, { event: 'UPDATE', table: 'activities' });
            const { inbox: deletes } = await follow(client, { event: 'DELETE', table: 'activities' });
            const { channel, inbox: all } = await follow(client, { event: '*', table: 'activities' });
            const id = await add({ raw_data: { source_type: 'text', content: 'héllo' }, sales_id: owner.sales_id });
            const inserted = await inserts.next();
            const read = await db.from('activities').select('*').eq('id', id).single();
            assert.deepEqual(inserted.new, read.data, 'the row is told as it is read');
            assert.deepEqual([inserted.eventType, inserted.schema, inserted.table, inserted.errors], ['INSERT', 'public', 'activities', null]);
            assert.ok(!Number.isNaN(Date.parse(inserted.commit_timestamp)));
            assert.deepEqual(inserted.old, {});
            await change(id, { direction: 'inbound' });
            const updated = await updates.next();
            assert.deepEqual([updated.eventType, updated.new.direction, updated.new.raw_data], ['UPDATE', 'inbound', read.data!.raw_data]);
            assert.deepEqual(updated.old, { id });
            await remove(id);
            const deleted = await deletes.next();
            assert.deepEqual([deleted.eventType, deleted.old, deleted.new], ['DELETE', { id }, {}]);
            await settle(channel);
            assert.deepEqual(all.items.map((item) => item.eventType), ['INSERT', 'UPDATE', 'DELETE']);
            assert.deepEqual([inserts.items, updates.items, deletes.items], [[], [], []], 'nobody hears what was not asked for');
        });

        test('filters choose by the new row', async () => {
            const client = use(service(createClient));
            const filters = {
                'type=eq.call': ['call'],
                'type=neq.call': ['note', 'sms'],
                'type=in.(sms,call)': ['call', 'sms'],
                [`sales_id=eq.${colleague.sales_id}`]: ['sms'],
                [`sales_id=gt.${owner.sales_id},type=eq.call`]: [],
                [`sales_id=lte.${owner.sales_id}`]: ['call'],
            };
            const followed = [];
            const everything = await follow(client, { event: 'INSERT', table: 'activities' });
            for (const filter of Object.keys(filters)) followed.push(await follow(client, { event: 'INSERT', table: 'activities', filter }));
            const ids = [await add({ type: 'note' }), await add({ type: 'call', sales_id: owner.sales_id }), await add({ type: 'sms', sales_id: colleague.sales_id })];
            const last = await follow(client, { event: 'DELETE', table: 'activities', filter: `id=eq.${ids[2]}` });
            // Who may see a row is asked when it is told: one that is gone by then is told to nobody.
            while ((await everything.inbox.next()).new.id !== ids[2]);
            await Promise.all(ids.map(remove));
            assert.deepEqual((await last.inbox.next()).old, { id: ids[2] });
            for (const [at, [filter, expected]] of Object.entries(filters).entries()) {
                await settle(followed[at].channel);
                assert.deepEqual(followed[at].inbox.items.map((item) => item.new.type).sort(), expected, filter);
            }
            assert.deepEqual(last.inbox.items, []);
        });

        test('several bindings in a channel and several channels on a socket go their own ways', async () => {
            const client = use(service(createClient));
            const both = new Inbox<string>();
            const channel = client.channel(randomUUID());
            channel.on('postgres_changes', { event: 'INSERT', schema: 'public', table: 'activities' }, () => both.put('activity'));
            channel.on('postgres_changes', { event: 'INSERT', schema: 'public', table: 'execution_jobs', filter: `recording_id=eq.${mark}` }, () => both.put('job'));
            await subscribed(channel);
            const left = await follow(client, { event: '*', table: 'execution_jobs' });
            const stays = await follow(client, { event: '*', table: 'execution_jobs' });
            const run = () => db.from('execution_jobs').insert({ recording_id: mark, status: 'completed' });
            await add();
            assert.equal(await both.next(), 'activity');
            assert.equal((await run()).error, null);
            assert.equal(await both.next(), 'job');
            await Promise.all([left.inbox.next(), stays.inbox.next()]);
            assert.equal(await client.removeChannel(left.channel), 'ok');
            assert.equal((await run()).error, null);
            assert.equal((await stays.inbox.next()).table, 'execution_jobs');
            await settle(stays.channel);
            assert.deepEqual(left.inbox.items, [], 'a channel that was left is silent');
        });

        test('one hears of the rows one may read', async () => {
            const own = use(anonymous(createClient));
            await signIn(own, owner);
            const other = use(anonymous(createClient));
            await signIn(other, colleague);
            const stranger = use(createClient(url, anonKey, { auth: { persistSession: false } }));
            const mine = await follow(own, { event: '*', table: 'activities' });
            const theirs = await follow(other, { event: '*', table: 'activities' });
            const nobodys = await follow(stranger, { event: '*', table: 'activities' });
            const hidden = await add({ sales_id: owner.sales_id });
            assert.equal((await mine.inbox.next()).new.id, hidden);
            const shared = await add({ sales_id: colleague.sales_id });
            assert.equal((await mine.inbox.next()).new.id, shared);
            assert.equal((await theirs.inbox.next()).new.id, shared, 'the private row was not told before it');
            await remove(hidden);
            const gone = await mine.inbox.next();
            assert.deepEqual([gone.eventType, gone.old], ['DELETE', { id: hidden }], 'a deleted row is reported by its key alone');
            await remove(shared);
            const next = await theirs.inbox.next();
            assert.deepEqual([next.eventType, next.old], ['DELETE', { id: shared }], 'the key of the private row was not sent');
            await settle(nobodys.channel);
            assert.deepEqual(nobodys.inbox.items, []);
        });

        test('a renewed token counts from then on, and one that is not renewed ends the channel', async () => {
            const exp = Math.floor(Date.now() / 1000) + 3;
            let token = tokenOf(colleague.id, { exp });
            const renewed = use(createClient(url, anonKey, { accessToken: async () => token }));
            // A client that is given its token by a function must be told before the first join.
            await renewed.realtime.setAuth();
            const { inbox } = await follow(renewed, { event: 'INSERT', table: 'activities' });
            token = tokenOf(owner.id);
            await renewed.realtime.setAuth();
            const late = use(signedIn(createClient, colleague.id, { exp }));
            await late.realtime.setAuth();
            const ended = new Promise<void>((resolve, reject) => {
                late.channel(randomUUID())
                    .on('postgres_changes', { event: '*', schema: 'public', table: 'activities' }, () => {})
                    .subscribe((status, error) => (status === 'CLOSED' ? resolve() : error && reject(error)));
            });
            await within(ended, 'the channel outlived its token');
            const hidden = await add({ sales_id: owner.sales_id });
            assert.equal((await inbox.next()).new.id, hidden, 'seen with the new token, and after the old one has expired');
        });

        test('a session that is renewed keeps its subscriptions', async () => {
            const client = use(anonymous(createClient));
            await signIn(client, owner);
            const { inbox } = await follow(client, { event: 'INSERT', table: 'activities' });
            assert.equal((await client.auth.refreshSession()).error, null);
            const id = await add({ sales_id: owner.sales_id });
            assert.equal((await inbox.next()).new.id, id);
        });

        test('nothing committed after SUBSCRIBED is lost', async () => {
            const client = use(service(createClient));
            // The older release closes its socket with its last channel; one that stays keeps it open.
            await follow(client, { event: 'DELETE', table: 'execution_jobs' });
            const written: { id: string; began: number }[] = [];
            let busy = true;
            const write = async () => {
                while (busy) {
                    const made = await db.from('execution_jobs').insert({ recording_id: mark, status: 'completed' }).select('id, created_at').single();
                    assert.equal(made.error, null);
                    written.push({ id: made.data!.id, began: Date.parse(made.data!.created_at) });
                }
            };
            const writers = Promise.all([write(), write(), write(), write()]);
            try {
                for (let round = 0; round < 25; round++) {
                    const heard = new Set<unknown>();
                    const channel = client.channel(randomUUID());
                    channel.on('postgres_changes', { event: 'INSERT', schema: 'public', table: 'execution_jobs', filter: `recording_id=eq.${mark}` }, (it) => heard.add(it.new.id));
                    let since = Infinity;
                    // The database's clock is ours: a transaction that began in a later millisecond commits later, too.
                    await subscribed(channel, () => (since = Date.now() + 1));
                    const due = await until('rows are written', async () => {
                        const later = written.filter((row) => row.began >= since);
                        return later.length >= 8 && later;
                    });
                    for (const { id, began } of due) await until(`round ${round}, ${began - since} ms after SUBSCRIBED`, async () => heard.has(id));
                    await client.removeChannel(channel);
                }
            } finally {
                busy = false;
                await writers;
            }
        });

        test('what cannot be followed is said', async () => {
            const client = use(service(createClient));
            await follow(client, { event: 'DELETE', table: 'activities' });
            for (const asked of [{ table: 'activities', filter: 'no_such=eq.1' }, { table: 'activities', filter: 'sales_id=eq.x' }, { table: 'no_such' }]) {
                const told = new Inbox<{ status: string; message: string }>();
                const channel = client.channel(randomUUID());
                channel.on('postgres_changes', { event: '*', schema: 'public', ...asked }, () => {}).on('system', {}, told.put as never);
                channel.subscribe();
                const { status, message } = await told.next();
                assert.equal(status, 'error');
                assert.match(message, /Unable to subscribe to changes/);
                await client.removeChannel(channel);
            }
        });

        test('a broadcast reaches the others, and oneself when asked for', async () => {
            const topic = randomUUID();
            const heard = new Inbox<string>();
            const join = async (who: string, self: boolean, ack: boolean) => {
                const channel = use(anonymous(createClient)).channel(topic, { config: { broadcast: { self, ack } } });
                channel.on('broadcast', { event: 'move' }, ({ payload }) => heard.put(`${who} ${payload.x}`));
                return subscribed(channel);
            };
            const ada = await join('ada', false, true);
            const bob = await join('bob', true, false);
            assert.equal(await ada.send({ type: 'broadcast', event: 'move', payload: { x: 1 } }), 'ok');
            assert.equal(await heard.next(), 'bob 1');
            await bob.send({ type: 'broadcast', event: 'move', payload: { x: 2 } });
            assert.deepEqual([await heard.next(), await heard.next()].sort(), ['ada 2', 'bob 2']);
            await settle(bob);
            assert.deepEqual(heard.items, []);
        });

        test('presence tells who is there, who came and who left', async () => {
            const topic = randomUUID();
            const join = async (key: string) => {
                const client = use(anonymous(createClient));
                const channel = client.channel(topic, { config: { presence: { key } } });
                const seen = new Inbox<string>();
                channel.on('presence', { event: 'join' }, ({ key }) => seen.put(`+${key}`)).on('presence', { event: 'leave' }, ({ key }) => seen.put(`-${key}`));
                await subscribed(channel);
                return { client, channel, seen };
            };
            const ada = await join('ada');
            assert.equal(await ada.channel.track({ at: 'desk' }), 'ok');
            assert.equal(await ada.seen.next(), '+ada');
            const bob = await join('bob');
            assert.equal(await bob.channel.track({ at: 'door' }), 'ok');
            assert.equal(await ada.seen.next(), '+bob');
            assert.deepEqual([await bob.seen.next(), await bob.seen.next()], ['+ada', '+bob']);
            const state = bob.channel.presenceState<{ at: string }>();
            assert.deepEqual([Object.keys(state).sort(), state.ada[0].at, state.bob[0].at], [['ada', 'bob'], 'desk', 'door']);
            await bob.channel.untrack();
            assert.equal(await ada.seen.next(), '-bob');
            assert.equal(await bob.seen.next(), '-bob');
            // Gone without a word.
            await ada.client.realtime.disconnect();
            assert.equal(await bob.seen.next(), '-ada');
            assert.deepEqual(bob.channel.presenceState(), {});
        });
    });
}
