// Tables and views, as programs written for Supabase use them.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { anonymous, releases, service, sql, url, anonKey, type Client } from './support.ts';

for (const { name, createClient } of releases) {
    describe(`${name}: tables`, () => {
        const db: Client = service(createClient);
        const mark = randomUUID();
        let owner: { id: number; user_id: string };
        let contacts: { id: number; first_name: string }[];

        before(async () => {
            const made = await db.from('sales').insert({ first_name: 'Wire', last_name: mark, user_id: randomUUID() }).select('id, user_id').single();
            assert.equal(made.error, null);
            owner = made.data!;
            const rows = [
                { first_name: 'Ada', last_name: mark, sales_id: owner.id, tags: ['x', 'z'], email_jsonb: [{ email: 'ada@example.com', type: 'Work' }] },
                { first_name: 'Bob +1', last_name: mark, sales_id: owner.id, tags: ['y'] },
                { first_name: 'Cy', last_name: mark },
            ];
            const inserted = await db.from('contacts').insert(rows).select('id, first_name');
            assert.equal(inserted.error, null);
            assert.equal(inserted.status, 201);
            contacts = inserted.data!.sort((a, b) => a.id - b.id);
        });

        after(async () => {
            await db.from('activities').delete().eq('sales_id', owner.id);
            await db.from('contacts').delete().eq('last_name', mark);
            await db.from('sales').delete().eq('id', owner.id);
        });

        const mine = () => db.from('contacts').select('first_name').eq('last_name', mark).order('id', { ascending: true });
        const names = async (query: PromiseLike<{ data: unknown; error: unknown }>) => {
            const { data, error } = await query;
            assert.equal(error, null);
            return (data as { first_name: string }[]).map((row) => row.first_name);
        };

        test('select, eq, order, limit', async () => {
            assert.deepEqual(await names(mine().limit(2)), ['Ada', 'Bob +1']);
            const { data, error, status } = await db.from('sales').select('id').eq('user_id', owner.user_id).single();
            assert.deepEqual([data, error, status], [{ id: owner.id }, null, 200]);
            assert.deepEqual(await names(mine().range(1, 1)), ['Bob +1']);
            const all = await db.from('contacts').select().eq('last_name', mark);
            assert.equal(all.data!.length, 3);
            assert.ok('company_id' in all.data![0], 'columns are never left out');
        });

        test('single and maybeSingle', async () => {
            const none = await db.from('contacts').select('*').eq('last_name', mark).eq('first_name', 'Nobody').single();
            assert.deepEqual([none.status, none.error!.code, none.error!.details], [406, 'PGRST116', 'The result contains 0 rows']);
            const several = await db.from('contacts').select('*').eq('last_name', mark).single();
            assert.equal(several.error!.code, 'PGRST116');
            const maybe = await db.from('contacts').select('*').eq('last_name', mark).eq('first_name', 'Nobody').maybeSingle();
            assert.deepEqual([maybe.data, maybe.error], [null, null]);
            const update = db.from('contacts').update({ title: 'Dr' }).eq('last_name', mark).eq('first_name', 'Nobody');
            const written = await update.select().maybeSingle();
            assert.deepEqual([written.data, written.error], [null, null]);
            const one = await db.from('contacts').select('first_name').eq('last_name', mark).eq('first_name', 'Ada').maybeSingle();
            assert.deepEqual(one.data, { first_name: 'Ada' });
        });

        test('operators', async () => {
            assert.deepEqual(await names(mine().eq('first_name', 'Bob +1')), ['Bob +1']);
            assert.deepEqual(await names(mine().neq('first_name', 'Ada')), ['Bob +1', 'Cy']);
            assert.deepEqual(await names(mine().gt('id', contacts[0].id).lt('id', contacts[2].id)), ['Bob +1']);
            assert.deepEqual(await names(mine().gte('id', contacts[1].id).lte('id', contacts[2].id)), ['Bob +1', 'Cy']);
            assert.deepEqual(await names(mine().is('sales_id', null)), ['Cy']);
            assert.deepEqual(await names(mine().not('sales_id', 'is', null)), ['Ada', 'Bob +1']);
            assert.deepEqual(await names(mine().in('first_name', ['Ada', 'Bob +1', 'No, (one)'])), ['Ada', 'Bob +1']);
            assert.deepEqual(await names(mine().in('id', [])), []);
            assert.deepEqual(await names(mine().like('first_name', '%b%')), ['Bob +1']);
            assert.deepEqual(await names(mine().ilike('first_name', 'A*')), ['Ada']);
            assert.deepEqual(await names(mine().contains('tags', ['x'])), ['Ada']);
            assert.deepEqual(await names(mine().containedBy('tags', ['y', 'z'])), ['Bob +1']);
            assert.deepEqual(await names(mine().overlaps('tags', ['x', 'y'])), ['Ada', 'Bob +1']);
            assert.deepEqual(await names(mine().contains('email_jsonb', JSON.stringify([{ type: 'Work' }]))), ['Ada']);
            assert.deepEqual(await names(mine().eq('email_jsonb->0->>email', 'ada@example.com')), ['Ada']);
            assert.deepEqual(await names(mine().filter('first_name', 'not.in', '(Ada,Cy)')), ['Bob +1']);
            assert.deepEqual(await names(mine().match({ first_name: 'Ada', sales_id: owner.id })), ['Ada']);
            assert.deepEqual(await names(mine().or(`first_name.eq.Cy,and(sales_id.eq.${owner.id},first_name.eq."Bob +1")`)), ['Bob +1', 'Cy']);
        });

        test('select: alias, cast, json path, embedding', async () => {
            const { data, error } = await db
                .from('contacts')
                .select('called:first_name, id::text, mail:email_jsonb->0->>email, sales(first_name), owner:sales!contacts_sales_id_fkey(id)')
                .eq('id', contacts[0].id)
                .single();
            assert.equal(error, null);
            assert.deepEqual(data, {
                called: 'Ada', id: String(contacts[0].id), mail: 'ada@example.com', sales: { first_name: 'Wire' }, owner: { id: owner.id },
            });
            const people = await db.from('sales').select('id, contacts(first_name)').eq('id', owner.id).order('id', { referencedTable: 'contacts' });
            assert.deepEqual(people.data, [{ id: owner.id, contacts: [{ first_name: 'Ada' }, { first_name: 'Bob +1' }] }]);
            const inner = await db.from('contacts').select('first_name, sales!inner(id)').eq('last_name', mark).eq('sales.id', owner.id);
            assert.equal(inner.data!.length, 2);
            const nothing = await db.from('contacts').select('first_name, nothing(id)');
            assert.deepEqual([nothing.status, nothing.error!.code], [400, 'PGRST200']);
        });

        test('select: embedding through a view', async () => {
            const made = await db.from('activities').insert({ type: 'note', sales_id: owner.id }).select('id').single();
            const id = made.data!.id;
            const seen = await db.from('unmatched_activities').select('type, sales(first_name)').eq('id', id).single();
            assert.deepEqual([seen.error, seen.data], [null, { type: 'note', sales: { first_name: 'Wire' } }]);
            const theirs = await db.from('sales').select('id, unmatched_activities(id)').eq('id', owner.id).single();
            assert.deepEqual([theirs.error, theirs.data], [null, { id: owner.id, unmatched_activities: [{ id }] }]);
            assert.equal((await db.from('activities').delete().eq('id', id)).error, null);
        });

        test('select: embedding through a table in between', async () => {
            sql(`create table wire_labels (id bigint primary key, word text);
                 create table wire_contact_labels (
                     contact_id bigint references contacts (id) on delete cascade, label_id bigint references wire_labels (id),
                     primary key (contact_id, label_id));
                 grant all on wire_labels, wire_contact_labels to service_role`);
            try {
                assert.equal((await db.from('wire_labels').insert([{ id: 1, word: 'vip' }, { id: 2, word: 'new' }])).error, null);
                const joined = [{ contact_id: contacts[0].id, label_id: 1 }, { contact_id: contacts[0].id, label_id: 2 }, { contact_id: contacts[1].id, label_id: 2 }];
                assert.equal((await db.from('wire_contact_labels').insert(joined)).error, null);
                const labelled = await db
                    .from('contacts')
                    .select('first_name, wire_labels!inner(word)')
                    .eq('last_name', mark)
                    .order('first_name')
                    .order('id', { referencedTable: 'wire_labels' });
                assert.deepEqual([labelled.error, labelled.data], [null, [
                    { first_name: 'Ada', wire_labels: [{ word: 'vip' }, { word: 'new' }] },
                    { first_name: 'Bob +1', wire_labels: [{ word: 'new' }] },
                ]]);
                const named = await db
                    .from('wire_labels')
                    .select('word, people:contacts!wire_contact_labels(first_name)')
                    .eq('word', 'new')
                    .order('first_name', { referencedTable: 'people' })
                    .limit(1, { referencedTable: 'people' })
                    .single();
                assert.deepEqual([named.error, named.data], [null, { word: 'new', people: [{ first_name: 'Ada' }] }]);
            } finally {
                sql('drop table wire_contact_labels, wire_labels');
            }
        });

        test('order and null placement', async () => {
            const by = (options: object) => names(db.from('contacts').select('first_name').eq('last_name', mark).order('sales_id', options).order('id', { ascending: false }));
            assert.deepEqual(await by({ ascending: true }), ['Bob +1', 'Ada', 'Cy']);
            assert.deepEqual(await by({ ascending: false }), ['Cy', 'Bob +1', 'Ada']);
            assert.deepEqual(await by({ ascending: true, nullsFirst: true }), ['Cy', 'Bob +1', 'Ada']);
        });

        test('count', async () => {
            const page = await db.from('contacts').select('*', { count: 'exact' }).eq('last_name', mark).limit(1);
            assert.deepEqual([page.count, page.data!.length, page.status], [3, 1, 206]);
            const head = await db.from('contacts').select('*', { count: 'exact', head: true }).eq('last_name', mark);
            assert.deepEqual([head.count, head.data, head.error], [3, null, null]);
            const update = await db.from('contacts').update({ title: 'Ms' }, { count: 'exact' }).eq('last_name', mark);
            assert.deepEqual([update.count, update.status], [3, 204]);
            const beyond = await db.from('contacts').select('*', { count: 'exact' }).eq('last_name', mark).range(50, 60);
            assert.deepEqual([beyond.status, beyond.error!.code], [416, 'PGRST103']);
        });

        test('insert, update, delete', async () => {
            const plain = await db.from('contacts').insert({ first_name: 'Dee', last_name: mark });
            assert.deepEqual([plain.status, plain.data, plain.error], [201, null, null]);
            const changed = await db.from('contacts').update({ title: 'Dr', tags: null }).eq('last_name', mark).eq('first_name', 'Dee').select('title, tags').single();
            assert.deepEqual([changed.status, changed.data], [200, { title: 'Dr', tags: null }]);
            const missed = await db.from('contacts').update({ title: 'Dr' }).eq('id', -1);
            assert.deepEqual([missed.status, missed.data, missed.error], [204, null, null]);
            const gone = await db.from('contacts').delete().eq('last_name', mark).eq('first_name', 'Dee').select('first_name');
            assert.deepEqual([gone.status, gone.data], [200, [{ first_name: 'Dee' }]]);
            const nobody = await db.from('contacts').delete().eq('id', -1);
            assert.deepEqual([nobody.status, nobody.data], [204, null]);
        });

        test('an update of the wrong number of rows under single() changes nothing', async () => {
            const { error, status } = await db.from('contacts').update({ title: 'Sir' }).eq('last_name', mark).select().single();
            assert.deepEqual([status, error!.code], [406, 'PGRST116']);
            assert.equal((await db.from('contacts').select('id').eq('last_name', mark).eq('title', 'Sir')).data!.length, 0);
        });

        test('lists with unequal keys, with and without defaults', async () => {
            const rows = [{ first_name: 'E1', last_name: mark, tags: ['t'] }, { first_name: 'E2', last_name: mark, first_seen: null }];
            const nulls = await db.from('contacts').insert(rows).select('first_name, tags, first_seen').order('first_name');
            assert.equal(nulls.error, null);
            assert.deepEqual(nulls.data!.map((row) => row.first_seen), [null, null]);
            const defaults = await db.from('contacts').insert(rows, { defaultToNull: false }).select('first_name, first_seen');
            assert.equal(defaults.error, null);
            const seen = Object.fromEntries(defaults.data!.map((row) => [row.first_name, row.first_seen]));
            assert.deepEqual([typeof seen.E1, seen.E2], ['string', null]);
            await db.from('contacts').delete().eq('last_name', mark).like('first_name', 'E%');
        });

        test('upsert', async () => {
            const id = contacts[0].id;
            const merged = await db.from('contacts').upsert({ id, last_name: mark, title: 'Prof' }).select('id, first_name, title').single();
            assert.deepEqual([merged.status, merged.data], [200, { id, first_name: 'Ada', title: 'Prof' }]);
            const ignored = await db.from('contacts').upsert({ id, title: 'no' }, { ignoreDuplicates: true }).select();
            assert.deepEqual([ignored.status, ignored.data], [201, []]);
            const byUser = await db.from('sales').upsert({ user_id: owner.user_id, last_name: mark, first_name: 'Wire' }, { onConflict: 'user_id' }).select('id').single();
            assert.deepEqual(byUser.data, { id: owner.id });
        });

        test('values keep their form, and a timestamp finds its row again', async () => {
            const raw = { source_type: 'text', content: 'ünï "q" \\', n: 1.5, list: [1, null, { a: true }] };
            const made = await db.from('activities').insert({ type: 'note', sales_id: owner.id, raw_data: raw, processing_status: 'completed' }).select().single();
            assert.equal(made.error, null);
            assert.deepEqual(made.data.raw_data, raw);
            assert.equal(typeof made.data.sales_id, 'number');
            assert.match(made.data.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?\+00:00$/);
            const found = await db.from('activities').select('id').eq('created_at', made.data.created_at).eq('id', made.data.id);
            assert.deepEqual(found.data, [{ id: made.data.id }]);
            const now = new Date();
            const dated = await db.from('contacts').update({ last_seen: now.toISOString() }).eq('id', contacts[2].id).select('last_seen').single();
            assert.equal(new Date(dated.data!.last_seen).getTime(), now.getTime());
            const view = await db.from('unmatched_activities').select('id').eq('id', made.data.id);
            assert.deepEqual(view.data, [{ id: made.data.id }]);
        });

        test('errors have their codes', async () => {
            const cases: [PromiseLike<{ status: number; error: { code: string; message: string } | null }>, number, string][] = [
                [db.from('nope').select(), 404, 'PGRST205'],
                [db.from('contacts').select('nope'), 400, '42703'],
                [db.from('contacts').select().eq('nope', 1), 400, '42703'],
                [db.from('contacts').insert({ nope: 1 }), 400, 'PGRST204'],
                [db.from('activities').select().eq('id', 'x'), 400, '22P02'],
                [db.from('contacts').select().filter('id', 'bogus', 1), 400, 'PGRST100'],
                [db.from('contacts').insert({ id: contacts[0].id }), 409, '23505'],
                [db.from('contacts').insert({ sales_id: -1 }), 409, '23503'],
                [db.from('ingestion_providers').insert({ name: mark }), 400, '23502'],
                [db.from('activities').insert({ type: 'nonsense' }), 400, '23514'],
                [db.from('contacts').delete(), 400, '21000'],
                [db.from('contacts').update({ title: 'x' }), 400, '21000'],
                [db.schema('auth' as 'public').from('users').select(), 406, 'PGRST106'],
                [db.from('contacts').select().csv() as never, 406, 'PGRST107'],
                [anonymous(createClient).from('activities').select(), 401, '42501'],
            ];
            for (const [query, status, code] of cases) {
                const answer = await query;
                assert.deepEqual([answer.status, answer.error?.code], [status, code], answer.error?.message);
                assert.deepEqual(Object.keys(answer.error!).filter((key) => key !== 'name').sort(), ['code', 'details', 'hint', 'message']);
            }
        });

        test('another schema by profile', async () => {
            const { data, error } = await db.schema('gleaner' as 'public').from('jobs').select('id').limit(1);
            assert.equal(error, null);
            assert.ok(Array.isArray(data));
        });

        test('keys that are none are refused', async () => {
            const wrong = await createClient(url, 'not-a-key', { auth: { persistSession: false } }).from('contacts').select();
            assert.deepEqual([wrong.status, wrong.error!.message], [401, 'Invalid API key']);
            const bare = await fetch(`${url}/rest/v1/contacts`);
            assert.deepEqual([bare.status, (await bare.json()).message], [401, 'No API key found in request']);
            const byAddress = await fetch(`${url}/rest/v1/contacts?apikey=${anonKey}`);
            assert.deepEqual([byAddress.status, (await byAddress.json()).code], [401, '42501']);
        });
    });
}
