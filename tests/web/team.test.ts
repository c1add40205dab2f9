// The overview and what administrators set up: people, keys, the audit.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { Server, closeBrowser, open, until, type View, type Visitor } from './support.ts';

let server: Server;
const visitors: Visitor[] = [];
async function visit(view: View = 'light'): Promise<Visitor> {
    const visitor = await open(server, view);
    visitors.push(visitor);
    return visitor;
}
before(async () => { server = await Server.start(); });
afterEach(async () => {
    const trouble = visitors.flatMap(visitor => visitor.trouble);
    for (const visitor of visitors.splice(0)) await visitor.close();
    assert.deepEqual(trouble, [], 'the page complained');
});
after(async () => { await closeBrowser(); await server.remove(); });

test('the overview measures the promises, and every number leads to its rows', async () => {
    server.sql(`insert into gleaner.jobs (kind, status, due_at, created_at, finished_at) select 'mail', 'done', null, now() - n * interval '1 minute', now() - n * interval '1 minute' + interval '3 seconds' from generate_series(1, 50) n;
        insert into gleaner.jobs (kind, status, due_at, created_at, error) select 'mail', 'failed', null, now() - interval '5 minutes', '{"type": "Timeout", "message": "no answer"}' from generate_series(1, 5) n;
        insert into gleaner.jobs (kind, due_at, created_at) values ('mail', now() - interval '10 minutes', now() - interval '10 minutes')`);
    const ada = await visit();
    await ada.signIn();
    const { page } = ada;
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.getByText('1 in jobs is waiting, the oldest for 10 min', { exact: false }).waitFor();
    const lights = page.getByRole('list', { name: 'Promises' });
    await lights.getByText('95 % within 30 s: kept').waitFor();
    await lights.getByText('Success above 99 %: not kept').waitFor();
    await lights.getByText('of 55 finished rows').waitFor();
    await page.locator('figure canvas').first().waitFor();
    await ada.picture('overview-full-light');
    assert.deepEqual(await ada.barriers(), []);
    await page.getByRole('table', { name: 'Queues' }).getByRole('link', { name: '5', exact: true }).click();
    await page.getByRole('heading', { name: 'Dead letters' }).waitFor();
});

test('an invitation leads to a first sign-in', async () => {
    const ada = await visit();
    await ada.signIn(undefined, '/settings/people');
    const { page } = ada;
    await page.getByRole('button', { name: 'Invite a person' }).click();
    await page.getByLabel('E-mail').fill('bob@example.com');
    await page.getByRole('button', { name: 'Invite', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'A link to hand over' });
    const link = (await dialog.locator('code').textContent())!;
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('table', { name: 'People' }).getByRole('row', { name: /bob@example.com/ }).getByText('invited').waitFor();

    const bob = await visit();
    await bob.page.goto(link);
    await bob.page.getByRole('heading', { name: 'Welcome' }).waitFor();
    await bob.picture('invite-light');
    assert.deepEqual(await bob.barriers(), []);
    // A password that is refused costs neither the link nor what was typed elsewhere.
    await bob.page.getByLabel('Password').fill('password1');
    await bob.page.getByRole('button', { name: 'Set password' }).click();
    await bob.page.getByRole('alert').waitFor();
    assert.deepEqual(bob.trouble.splice(0).filter(text => !text.includes('422')), []);
    await bob.page.getByLabel('Password').fill('a-long-enough-secret-77');
    await bob.page.getByRole('button', { name: 'Set password' }).click();
    await bob.isLive();
    await bob.page.getByRole('heading', { name: 'Activity' }).waitFor();
    await bob.page.getByText('Welcome. What arrives').waitFor();

    // The link works once; the password works from then on.
    const late = await visit();
    await late.page.goto(link);
    await late.page.getByLabel('Password').fill('another-secret-of-a-thief');
    await late.page.getByRole('button', { name: 'Set password' }).click();
    await late.page.getByText('This link was used already, or its time is over.').waitFor();
    late.trouble.splice(0);
    await late.signIn({ email: 'bob@example.com', password: 'a-long-enough-secret-77' });
    await bob.go('/settings/people');
    await bob.page.getByText('Only administrators can change this.').waitFor();

    // An administrator ends it; the audit says so.
    await ada.go('/settings/people');
    await page.getByRole('row', { name: /bob@example.com/ }).getByRole('button', { name: 'Disable' }).click();
    await page.getByRole('dialog', { name: 'Disable bob@example.com' }).getByRole('button', { name: 'Disable' }).click();
    await until('bob to be disabled', () => server.sql(`select disabled from sales where email = 'bob@example.com'`) === 't');
    await ada.go('/audit');
    const audit = page.getByRole('table', { name: 'Audit' });
    await audit.getByRole('row', { name: /disable/ }).waitFor();
    await audit.getByRole('row', { name: /invite/ }).waitFor();
    // Bob's page is refused from now on, and its browser reports that.
    bob.trouble.splice(0);
});

test('a key is shown once, works, and is refused when it is revoked', async () => {
    const ada = await visit();
    await ada.signIn(undefined, '/settings/keys');
    const { page } = ada;
    await page.getByText('No keys yet.').waitFor();
    await page.getByRole('button', { name: 'Make a key' }).click();
    await page.getByLabel('Name').fill('laptop');
    await page.getByRole('button', { name: 'Make key' }).click();
    const key = (await page.getByRole('dialog', { name: 'The key laptop' }).locator('code').textContent())!;
    await page.getByRole('button', { name: 'Done' }).click();
    const claim = () => fetch(`${server.url}/v1/queues/jobs/claim`, { method: 'POST', body: '{"agent": "a"}', headers: { authorization: `Bearer ${key}` } });
    const before = (await claim()).status;
    assert.notEqual(before, 401);
    await page.getByRole('row', { name: /laptop/ }).getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('dialog', { name: 'Revoke laptop' }).getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('Revoked: programs that use it are refused within seconds.').waitFor();
    await until('the key to be refused', async () => (await claim()).status === 401);
});

test('a forgotten password is replaced by the link that an administrator hands over, and all sessions end', async () => {
    const eve = server.addPerson('eve@example.com');
    const before = await visit();
    await before.signIn(eve);
    const link = server.gleaner(['users', 'reset', 'eve@example.com']).trim();
    const after = await visit();
    await after.page.goto(link);
    await after.page.getByRole('heading', { name: 'New password' }).waitFor();
    await after.page.getByLabel('Password').fill('a-fresh-secret-of-eve-12');
    await after.page.getByRole('button', { name: 'Set password' }).click();
    await after.page.getByText('Your password is changed.').waitFor();
    await after.isLive();
    const answer = await fetch(`${server.url}/auth/v1/token?grant_type=password`, { method: 'POST', headers: { apikey: server.anonKey, 'content-type': 'application/json' }, body: JSON.stringify(eve) });
    assert.equal(answer.status, 400, 'the old password');
    // The old session ends, and its browser reports that.
    before.trouble.splice(0);
});
