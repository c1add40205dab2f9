// A block of data: loading, loaded, or failed; old data stays while new data is fetched.
import { untrack } from 'svelte';
import { failure, type Failure } from './failure';
import { live } from './live.svelte';

export class Resource<T> {
    data = $state.raw<T | undefined>(undefined);
    error = $state.raw<Failure | null>(null);
    loading = $state(false);
    #turn = 0;

    constructor(private readonly fetcher: () => Promise<T>) {}

    /** An answer to an older question is dropped. */
    load = async (): Promise<void> => {
        const turn = ++this.#turn;
        this.loading = true;
        try {
            const data = await this.fetcher();
            if (turn !== this.#turn) return;
            this.data = data;
            this.error = null;
        } catch (error) {
            if (turn === this.#turn) this.error = failure(error);
        } finally {
            if (turn === this.#turn) this.loading = false;
        }
    };
}

type When = {
    /** Read in the effect: when it changes, the data is fetched anew and the old is dropped. */
    key?: () => unknown;
    /** Tables whose changes ask for a new look, at most every two seconds. */
    tables?: string[];
    /** Seconds between looks while the page is visible. */
    every?: number;
};

/** A resource of a component: fetched at once, after every gap, and as `when` says. */
export function resource<T>(fetcher: () => Promise<T>, when: When = {}): Resource<T> {
    const made = new Resource(fetcher);
    let first = true;
    $effect(() => {
        when.key?.();
        if (!first) untrack(() => { made.data = undefined; });
        first = false;
        void untrack(made.load);
    });
    $effect(() => {
        if (live.epoch > 0) void untrack(made.load);
    });
    $effect(() => {
        let waiting: ReturnType<typeof setTimeout> | undefined;
        const soon = () => { waiting ??= setTimeout(() => { waiting = undefined; if (!document.hidden) void made.load(); }, made.loading ? 2000 : 300); };
        const stops = (when.tables ?? []).map(table => live.on(table, soon));
        const timer = when.every ? setInterval(() => { if (!document.hidden) void made.load(); }, when.every * 1000) : undefined;
        return () => {
            for (const stop of stops) stop();
            clearTimeout(waiting);
            clearInterval(timer);
        };
    });
    return made;
}
