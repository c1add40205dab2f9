// Acts on all rows that match: started on the server, watched here, on whatever page the reader is.
import { get, post, remove } from './api';
import { Failure } from './failure';
import { path, type Filters } from './items';
import { notices } from './notices.svelte';
import { counted } from './words';

export type Verb = 'requeue' | 'cancel' | 'bury' | 'assign' | 'reschedule';
export type Bulk = {
    id: string; act: Verb; filter: Filters; caller: string; state: 'running' | 'done' | 'stopped' | 'failed' | 'interrupted';
    total: number; done: number; already: number; failed: number; error: string | null; started_at: string;
};

export const verbs: Record<Verb, string> = { requeue: 'Requeue', cancel: 'Cancel', bury: 'Give up', assign: 'Give to', reschedule: 'Reschedule' };

class Running {
    list = $state.raw<{ queue: string; bulk: Bulk }[]>([]);
    #heard = new Set<(queue: string) => void>();
    #timer: ReturnType<typeof setInterval> | undefined;

    async start(queue: string, act: Verb, filter: Filters, more: object = {}): Promise<void> {
        this.#put(queue, await post<Bulk>(path(queue, '/bulk'), { act, filter, ...more }));
    }

    /** What was started before this page was opened. */
    async find(queue: string): Promise<void> {
        const found = await get<Bulk[]>(path(queue, '/bulk'));
        for (const bulk of found) if (bulk.state === 'running') this.#put(queue, bulk);
    }

    async stop(queue: string, id: string): Promise<void> { await remove(path(queue, `/bulk/${id}`)); }

    /** Calls `hear` after each look at a bulk act of any queue. */
    on(hear: (queue: string) => void): () => void {
        this.#heard.add(hear);
        return () => { this.#heard.delete(hear); };
    }

    #put(queue: string, bulk: Bulk): void {
        this.list = [...this.list.filter(one => one.bulk.id !== bulk.id), { queue, bulk }];
        this.#timer ??= setInterval(() => { if (!document.hidden) void this.#look(); }, 1000);
        void this.#look();
    }

    async #look(): Promise<void> {
        for (const { queue, bulk } of this.list) {
            const now = await get<Bulk>(path(queue, `/bulk/${bulk.id}`)).catch(error => error instanceof Failure && error.status === 404 ? null : bulk);
            if (now?.state === 'running') { this.list = this.list.map(one => one.bulk.id === bulk.id ? { queue, bulk: now } : one); continue; }
            if (!this.list.some(one => one.bulk.id === bulk.id)) continue;
            this.list = this.list.filter(one => one.bulk.id !== bulk.id);
            if (now) notices[now.state === 'done' || now.state === 'stopped' ? 'say' : 'fail'](ended(now) as never);
            for (const hear of this.#heard) hear(queue);
        }
        if (this.list.length === 0) { clearInterval(this.#timer); this.#timer = undefined; }
    }
}

function ended(bulk: Bulk): string | Failure {
    const did = `${counted(bulk.done, 'row')} done, ${bulk.already} already, ${bulk.failed} failed.`;
    if (bulk.state === 'done') return did;
    if (bulk.state === 'stopped') return `Stopped: ${did} The rest was not touched.`;
    return new Failure(`${bulk.error ?? 'The server that worked on it ended.'} ${did} The rest was not touched.`);
}

export const running = new Running();
