// The list of activities: pages by key, changes merged in place, new rows at the top or counted.
import { columns, fits, fromRow, page, type Activity, type Filters } from './activities';
import { rows } from './api';
import { failure, type Failure } from './failure';
import { live, type Change } from './live.svelte';
import { me } from './session.svelte';
import { supabase } from './supabase';

const PAGE = 50;
const MOST = 500;

export class Feed {
    items = $state.raw<Activity[]>([]);
    /** Rows that arrived while the reader was elsewhere on the page. */
    unseen = $state.raw<Activity[]>([]);
    /** Ids that just arrived, to be tinted. */
    fresh = $state.raw<Set<string>>(new Set());
    state = $state<'loading' | 'ready'>('loading');
    error = $state.raw<Failure | null>(null);
    isComplete = $state(false);
    isFetching = $state(false);
    /** The top was dropped to keep the page light. */
    isTrimmed = $state(false);
    #turn = 0;
    #heard = new Map<string, { at: number; row: Activity | null }>();
    #pending: Change[] = [];

    constructor(private readonly filters: () => Filters, private readonly mayMove: () => boolean) {}

    /** The first page, as of now. What was pushed after the request went out is newer than its answer. */
    async load(reset: boolean): Promise<void> {
        const turn = ++this.#turn;
        const began = Date.now();
        if (reset) { this.state = 'loading'; this.items = []; this.unseen = []; this.isTrimmed = false; }
        try {
            const found = await rows<Activity[]>(page(this.filters(), me.person?.id, undefined, PAGE));
            if (turn !== this.#turn) return;
            const newer = (row: Activity) => { const heard = this.#heard.get(row.id); return heard && heard.at >= began ? heard.row : row; };
            const top = found.map(newer).filter(row => row !== null);
            const ids = new Set(top.map(row => row.id));
            const oldest = found.at(-1)?.created_at;
            const rest = reset || !oldest ? [] : this.items.filter(row => !ids.has(row.id) && row.created_at < oldest);
            const pushed = [...this.#heard.values()].filter(heard => heard.at >= began && heard.row && !ids.has(heard.row.id) && fits(heard.row, this.filters(), me.person?.id)).map(heard => heard.row!);
            this.items = sorted([...pushed, ...top, ...rest]);
            this.unseen = [];
            if (rest.length === 0) this.isComplete = found.length < PAGE;
            this.error = null;
        } catch (error) {
            if (turn === this.#turn) this.error = failure(error);
        }
        if (turn === this.#turn) this.state = 'ready';
    }

    async older(): Promise<void> {
        const last = this.items.at(-1);
        if (!last || this.isComplete || this.isFetching) return;
        const turn = this.#turn;
        this.isFetching = true;
        try {
            const found = await rows<Activity[]>(page(this.filters(), me.person?.id, last, PAGE));
            if (turn !== this.#turn) return;
            const have = new Set(this.items.map(row => row.id));
            const all = [...this.items, ...found.filter(row => !have.has(row.id))];
            this.isTrimmed ||= all.length > MOST;
            this.items = all.slice(-MOST);
            this.isComplete = found.length < PAGE;
            this.error = null;
        } catch (error) {
            this.error = failure(error);
        } finally {
            this.isFetching = false;
        }
    }

    listen(): () => void {
        return live.on('activities', change => {
            if (this.#pending.length === 0) requestAnimationFrame(() => this.#apply());
            this.#pending.push(change);
        });
    }

    /** A row that an act of ours changed, before the change is pushed. */
    async refresh(id: string): Promise<void> {
        const [row] = await rows<Activity[]>(supabase.from('activities').select(columns).eq('id', id));
        if (row) this.items = this.items.map(one => one.id === id ? row : one);
    }

    replace(row: Activity): void { this.items = this.items.map(one => one.id === row.id ? row : one); }

    showUnseen(): void {
        if (this.isTrimmed) { void this.load(true); return; }
        this.#add(this.unseen);
        this.unseen = [];
    }

    #apply(): void {
        const changes = this.#pending;
        this.#pending = [];
        const now = Date.now();
        if (this.#heard.size > 5000) this.#heard.clear();
        let items = this.items;
        const arrived: Activity[] = [];
        for (const change of changes) {
            const id = String((change.eventType === 'DELETE' ? change.old : change.new).id);
            const row = change.eventType === 'DELETE' ? null : fromRow(change.new);
            this.#heard.set(id, { at: now, row });
            const known = items.some(one => one.id === id);
            if (!row) items = items.filter(one => one.id !== id);
            else if (known) items = items.map(one => one.id === id ? row : one);
            else if (change.eventType === 'INSERT' && fits(row, this.filters(), me.person?.id)) arrived.push(row);
            else this.unseen = this.unseen.map(one => one.id === id ? row : one);
        }
        if (items !== this.items) this.items = items;
        if (arrived.length === 0 || this.filters().before) return;
        if (this.mayMove() && !this.isTrimmed) this.#add(arrived);
        else this.unseen = [...arrived, ...this.unseen];
    }

    #add(arrived: Activity[]): void {
        const have = new Set(this.items.map(row => row.id));
        const added = arrived.filter(row => !have.has(row.id));
        this.items = sorted([...added, ...this.items]).slice(0, MOST);
        const ids = added.map(row => row.id);
        this.fresh = new Set([...this.fresh, ...ids]);
        setTimeout(() => { this.fresh = new Set([...this.fresh].filter(id => !ids.includes(id))); }, 3000);
    }
}

function sorted(list: Activity[]): Activity[] {
    return list.sort((a, b) => a.created_at === b.created_at ? (a.id < b.id ? 1 : -1) : Date.parse(b.created_at) - Date.parse(a.created_at));
}
