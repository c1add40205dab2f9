// How the queues do, as the server measures it, once for all who look.
import { get } from './api';
import type { Count } from './items';

/** A slice of time: its start in seconds, rows that arrived in it, how many of them are done or given up, and their p95. */
export type Slice = [number, number, number, number, number | null];
export type QueueFigures = {
    counts: Count[]; slices: Slice[]; broken?: string; sampled?: number; capped?: boolean; done?: number; dead?: number; owned?: number; stolen?: number;
    timed?: number; within_30s?: number; measures?: 'finished' | 'taken'; p50?: number | null; p95?: number | null; p99?: number | null;
};
export type Figures = {
    at: string; range_seconds: number; slice_seconds: number; queues: Record<string, QueueFigures>;
    channels: { id: string; name: string; is_active: boolean; last: string | null }[] | null;
    agents: { online: number; busy: number; idle: number | null; samples: number };
};

export const figures = (range: string) => get<Figures>(`/v1/figures?range=${range || '1h'}`);

/** A promise, measured: kept, broken, or too little to tell. */
export type Light = { title: string; is: 'kept' | 'broken' | 'unknown'; figure: string; sample: string };

/** Below this, a share says nothing. */
const ENOUGH = 20;

function light(title: string, kept: number, of: number, word: string, isKept: (share: number) => boolean): Light {
    if (of < ENOUGH) return { title, is: 'unknown', figure: of ? `${kept} of ${of}` : 'nothing to measure yet', sample: `fewer than ${ENOUGH} ${word}` };
    const share = kept / of;
    return { title, is: isKept(share) ? 'kept' : 'broken', figure: `${(Math.floor(share * 1000) / 10).toFixed(1)} %`, sample: `of ${of.toLocaleString('en')} ${word}` };
}

export function lights({ queues, agents }: Figures): Light[] {
    const sum = (pick: (one: QueueFigures) => number | undefined) => Object.values(queues).reduce((n, one) => n + (pick(one) ?? 0), 0);
    const ended = sum(one => one.done) + sum(one => one.dead);
    return [
        light('95 % within 30 s', sum(one => one.within_30s), sum(one => one.timed), 'rows', share => share >= 0.95),
        light('Success above 99 %', sum(one => one.done), ended, 'finished rows', share => share > 0.99),
        light('Agents idle below 20 %', Math.round((agents.idle ?? 0) * agents.samples), agents.samples, 'samples of agents', share => share < 0.2),
    ];
}

/** The worst that can be said, in a sentence, or that all is well. */
export function verdict({ queues }: Figures): { text: string; link: string; isWell: boolean } {
    const seconds = (count: Count | undefined) => count?.oldest_seconds ?? 0;
    let worst: { text: string; link: string; weight: number } | null = null;
    for (const [name, one] of Object.entries(queues)) {
        const ready = one.counts.find(count => count.state === 'ready');
        const dead = one.counts.find(count => count.state === 'dead');
        const say = (text: string, link: string, weight: number) => { if (!worst || weight > worst.weight) worst = { text, link, weight }; };
        if (one.broken) say(`${name} cannot be used: ${one.broken}`, `/queues/${name}`, 1e12);
        if (ready && seconds(ready) > 30) say(`${ready.count.toLocaleString('en')}${ready.capped ? '+' : ''} in ${name} ${ready.count === 1 ? 'is' : 'are'} waiting, the oldest for ${long(seconds(ready))}: ${ready.count === 1 ? 'no agent takes it.' : 'no agent takes them, or too few do.'}`, `/queues/${name}?state=ready`, 1e6 + ready.count);
        if (dead && dead.count > 0) say(`${dead.count.toLocaleString('en')}${dead.capped ? '+' : ''} in ${name} ${dead.count === 1 ? 'was' : 'were'} given up.`, `/dead?queue=${name}`, dead.count);
    }
    const found = worst as { text: string; link: string } | null;
    return found ? { ...found, isWell: false } : { text: 'All is well.', link: '', isWell: true };
}

const long = (s: number) => s < 90 ? `${Math.round(s)} s` : s < 5400 ? `${Math.round(s / 60)} min` : s < 172_800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86_400)} days`;
